# SPDX-License-Identifier: Apache-2.0
"""`python -m ingot …` is the command `ingot …`."""
from .command import main

main()
