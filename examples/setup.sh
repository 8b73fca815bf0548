#!/bin/sh
echo "The server is set up." > /etc/motd
