internal import Glibc

/// How much memory this process may have, as far as its control groups and the machine say.
package enum MemoryLimit {
  /// The most of it that several connections take, where `--max-memory` does not say: bytes.
  static let most: UInt64 = 512 << 20

  /// A quarter of what there is, or ``most``.
  static func ofConnections() -> UInt64 {
    let machine = UInt64(max(0, sysconf(Int32(_SC_PHYS_PAGES)))) * UInt64(max(0, sysconf(Int32(_SC_PAGESIZE))))
    let groups = contents("/proc/self/cgroup").flatMap { ofGroups($0, contents: contents) }
    return min(min(groups ?? .max, machine) / 4, most)
  }

  /// The least of the limits of a process's control groups and of those above them (cgroups(7); version 2: memory.max
  /// and memory.high, version 1: memory.limit_in_bytes).
  ///
  /// In a container, the paths can be the host's while only the container's own groups are mounted: what is not there
  /// is passed over.
  /// - Parameters:
  ///   - groups: the text of `/proc/self/cgroup`, lines of `ID:CONTROLLERS:PATH`.
  ///   - contents: a file's text; nil where there is none.
  /// - Returns: bytes; nil where there is no limit.
  package static func ofGroups(_ groups: String, contents: (String) -> String?) -> UInt64? {
    var limits: [UInt64] = []
    for line in groups.split(separator: "\n") {
      let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { continue }
      let isUnified = fields[0] == "0" && fields[1].isEmpty
      guard isUnified || fields[1].split(separator: ",").contains("memory") else { continue }
      let mounts = isUnified ? ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] : ["/sys/fs/cgroup/memory"]
      let files = isUnified ? ["memory.max", "memory.high"] : ["memory.limit_in_bytes"]
      var parts = fields[2].split(separator: "/")
      while true {
        let path = parts.map { "/\($0)" }.joined()
        for mount in mounts {
          // `max`, which is no number, is no limit.
          limits += files.compactMap { contents("\(mount)\(path)/\($0)").flatMap { UInt64($0.prefix { $0 != "\n" }) } }
        }
        if parts.popLast() == nil { break }
      }
    }
    return limits.min()
  }

  /// The first page of a small file, as those of proc(5) are.
  private static func contents(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &bytes, bytes.count)
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }
}
