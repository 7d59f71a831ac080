//! Files of other programs: printed, or written without a loss of what is there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bowline_terminal::note;
use clap::Args;

use crate::error::CliError;

/// A file of another program.
#[derive(Debug)]
pub(crate) struct ClientFile {
    /// Below the root directory.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// Whether files are written.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Writing {
    /// Write the files; without it they are printed
    #[arg(long)]
    pub(crate) write: bool,
    /// Replace files that have other content
    #[arg(long, requires = "write")]
    pub(crate) replace: bool,
}

impl Writing {
    /// Prints or writes files below a directory.
    ///
    /// # Errors
    /// A file has other content, or cannot be written; then none is.
    pub(crate) fn run(self, root: &Path, files: &[ClientFile]) -> Result<(), CliError> {
        if self.write { self.write(root, files) } else { print(root, files) }
    }

    /// Looks at all files before it writes the first.
    fn write(self, root: &Path, files: &[ClientFile]) -> Result<(), CliError> {
        let failed = |path: &Path, source| CliError::File { path: path.into(), source };
        let mut missing = Vec::new();
        for file in files {
            let path = root.join(&file.path);
            match std::fs::read_to_string(&path) {
                Ok(text) if text == file.text => note(&format!("unchanged: {}\n", path.display())),
                Ok(_) if self.replace => missing.push((path, file, "replaced")),
                Ok(_) => {
                    let why = format!(
                        "{} has other content: merge what the command prints without --write, or pass --replace",
                        path.display()
                    );
                    return Err(CliError::Option(why));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => missing.push((path, file, "written")),
                Err(error) if error.kind() == ErrorKind::InvalidData && self.replace => {
                    missing.push((path, file, "replaced"));
                }
                Err(error) => return Err(failed(&path, error)),
            }
        }
        for (path, file, how) in missing {
            if let Some(directory) = path.parent() {
                std::fs::create_dir_all(directory).map_err(|source| failed(directory, source))?;
            }
            std::fs::write(&path, &file.text).map_err(|source| failed(&path, source))?;
            note(&format!("{how}: {}\n", path.display()));
        }
        Ok(())
    }
}

fn print(root: &Path, files: &[ClientFile]) -> Result<(), CliError> {
    let texts: Vec<String> =
        files.iter().map(|file| format!("# {}\n{}", root.join(&file.path).display(), file.text)).collect();
    crate::print(&texts.join("\n"))
}
