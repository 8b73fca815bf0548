"""What the scripts that run clients share: counted checks, packages from PyPI, a Kiln to ask, requests and their users.

A script has `sys.path.append(FOLDER)` with the folder above this one, and prints `N passed, N failed` at its end.
"""
