package import Glibc

/// Whether no process of the group runs any more. One that has ended and waits for its parent does not count: where
/// process 1 is no init (as in a container), nobody waits for orphans.
/// - Throws: ``TestSupportError`` where /proc is missing.
package func isProcessGroupGone(_ group: pid_t) throws -> Bool {
  if kill(-group, 0) != 0, errno == ESRCH { return true }
  guard let directory = opendir("/proc") else { throw TestSupportError("/proc cannot be read") }
  defer { closedir(directory) }
  while let entry = readdir(directory) {
    let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    // One that ends meanwhile has no file any more.
    guard pid_t(name) != nil, let bytes = try? readFile("/proc/\(name)/stat") else { continue }
    // proc(5): after the name, which is in parentheses: state, parent, process group.
    let fields = String(decoding: bytes, as: UTF8.self).split(separator: ")").last?.split(separator: " ") ?? []
    if fields.count > 2, fields[2] == "\(group)", fields[0] != "Z", fields[0] != "X" { return false }
  }
  return true
}
