import Glibc

/// The path of an executable that the package built, such as `spoolrun`: it stands beside the test bundle,
/// whatever `--scratch-path` and configuration were.
package func productPath(_ name: String) throws -> String {
  var candidates: [String] = []
  for path in ["/proc/self/exe"] + CommandLine.arguments {
    guard let resolved = realpath(path, nil) else { continue }
    defer { free(resolved) }
    let parts = String(cString: resolved).split(separator: "/", omittingEmptySubsequences: false)
    candidates.append(parts.dropLast().joined(separator: "/"))
  }
  for directory in candidates where access("\(directory)/\(name)", X_OK) == 0 {
    return "\(directory)/\(name)"
  }
  throw TestSupportError("no executable \(name) in any of \(candidates); build it first")
}
