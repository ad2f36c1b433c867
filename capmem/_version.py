"""What identifies the numbers: the format of stored tables and the numerics behind them."""

FORMAT = 1  # raised when the columns of a stored table change their meaning
NUMERICS = 4  # raised when the same configuration gives other numbers than before
