internal import Glibc
package import SystemPackage

/// The absolute path of a directory, without links (realpath(3)). Receipts name it, and have only UTF-8: where it has
/// other bytes, a link may have a name in UTF-8, and so the path stays as the person wrote it.
/// - Throws: why there is none; EILSEQ where no path is UTF-8.
package func realPath(_ path: String) throws(Errno) -> String {
  guard let real = realpath(path, nil) else { throw Errno(rawValue: errno) }
  defer { free(real) }
  if let text = String(validatingCString: real) { return text }
  if path.begins(with: "/") { return path }
  guard let current = getcwd(nil, 0) else { throw Errno(rawValue: errno) }
  defer { free(current) }
  guard !path.isEmpty, let directory = String(validatingCString: current) else { throw Errno(rawValue: EILSEQ) }
  return "\(directory)/\(path)"
}
