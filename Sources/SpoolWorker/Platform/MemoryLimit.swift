internal import Spool
internal import Glibc

/// How much memory this process may use, by its control groups and the machine's memory.
package enum MemoryLimit {
  /// The largest default for `--max-memory`, in bytes.
  static let most: UInt64 = 512 << 20

  /// A quarter of the available memory, at most ``most``.
  static func ofConnections() -> UInt64 {
    let machine = UInt64(max(0, sysconf(Int32(_SC_PHYS_PAGES)))) * UInt64(max(0, sysconf(Int32(_SC_PAGESIZE))))
    let groups = contents("/proc/self/cgroup").flatMap { ofGroups($0, contents: contents) }
    return min(min(groups ?? .max, machine) / 4, most)
  }

  /// The lowest limit of a process's control groups and their parents (cgroups(7); version 2: memory.max and
  /// memory.high, version 1: memory.limit_in_bytes).
  ///
  /// In a container, the paths may be those of the host while only the container's own groups are mounted. Missing
  /// files are skipped.
  /// - Parameters:
  ///   - groups: the text of `/proc/self/cgroup`, lines of `ID:CONTROLLERS:PATH`.
  ///   - contents: returns a file's text; nil if there is no such file.
  /// - Returns: bytes; nil if there is no limit.
  package static func ofGroups(_ groups: String, contents: (String) -> String?) -> UInt64? {
    var limits: [UInt64] = []
    for line in groups.split(at: "\n") {
      let fields = line.split(at: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { continue }
      let isUnified = fields[0] == "0" && fields[1].isEmpty
      guard isUnified || fields[1].split(at: ",").contains("memory") else { continue }
      let mounts = isUnified ? ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] : ["/sys/fs/cgroup/memory"]
      let files = isUnified ? ["memory.max", "memory.high"] : ["memory.limit_in_bytes"]
      var parts = fields[2].split(at: "/")
      while true {
        let path = parts.map { "/\($0)" }.joined()
        for mount in mounts {
          // The value `max` means no limit.
          limits += files.compactMap { contents("\(mount)\(path)/\($0)").flatMap { UInt64($0.prefix(before: "\n")) } }
        }
        if parts.popLast() == nil { break }
      }
    }
    return limits.min()
  }

  /// Reads at most the first 4 KiB of a file; the files of proc(5) and cgroups(7) are small.
  private static func contents(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = read(descriptor, &bytes, bytes.count)
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }
}
