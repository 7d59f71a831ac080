"""Makes distributions of some hundred bytes: make.py DIRECTORY NAME VERSION [HEADER...] writes a wheel and an sdist."""
import gzip
import io
import sys
import tarfile
import zipfile
from pathlib import Path

directory, name, version, *headers = sys.argv[1:]
module = name.replace("-", "_")
metadata = "\n".join(["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}", *headers, "", "A package.", ""])
info = f"{module}-{version}.dist-info"
members = {
    f"{module}.py": f"version = {version!r}\n",
    f"{info}/METADATA": metadata,
    f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: make\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = f"{info}/RECORD"
members[record] = "".join(f"{path},,\n" for path in [*members, record])
Path(directory).mkdir(parents=True, exist_ok=True)
with zipfile.ZipFile(Path(directory, f"{module}-{version}-py3-none-any.whl"), "w") as wheel:
    for path, text in members.items():
        wheel.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), text)

content = io.BytesIO()
with tarfile.open(fileobj=content, mode="w") as archive:
    for path, text in {f"{module}-{version}/PKG-INFO": metadata, f"{module}-{version}/{module}.py": members[f"{module}.py"]}.items():
        member = tarfile.TarInfo(path)
        member.size = len(text.encode())
        archive.addfile(member, io.BytesIO(text.encode()))
with open(Path(directory, f"{module}-{version}.tar.gz"), "wb") as target:
    with gzip.GzipFile(fileobj=target, mode="wb", mtime=0) as packed:
        packed.write(content.getvalue())
