# Makes the archive of a version of a Go module: FILE MODULE VERSION [REQUIREMENT...].
import sys
import zipfile

file, module, version, *requirements = sys.argv[1:]
name = module.split("/")[-1]
if name.startswith("v") and name[1:].isdigit():
    name = module.split("/")[-2]
lines = "".join(f"require {requirement}\n" for requirement in requirements)
imports = "".join(f'import _ "{requirement.split()[0]}"\n' for requirement in requirements)


def add(archive, path, text):
    # The same archive each time.
    archive.writestr(zipfile.ZipInfo(f"{module}@{version}/{path}"), text)


with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
    add(archive, "go.mod", f"module {module}\n\ngo 1.21\n{lines}")
    add(archive, f"{name}.go", f'package {name}\n\n{imports}\nconst Version = "{version}"\n')
