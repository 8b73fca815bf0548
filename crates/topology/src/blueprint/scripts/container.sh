#!/bin/sh
# Installs the application server.
set -e
if command -v apt-get > /dev/null; then
    apt-get update
    case @KIND@ in
        tomcat) apt-get install -y tomcat10 || apt-get install -y tomcat9 ;;
        jetty) apt-get install -y jetty9 ;;
    esac
elif command -v dnf > /dev/null; then
    dnf install -y @KIND@
else
    yum install -y @KIND@
fi
