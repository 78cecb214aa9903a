internal import Glibc
internal import SystemPackage

extension WorkerID {
  /// This process as a worker of this host.
  /// - Parameter host: what claims name this host by; nil for its own name.
  package static func current(host: String? = nil) -> (owner: WorkerID, boot: String) {
    (
      WorkerID(
        host: host ?? hostName(), process: getpid(), tag: UInt32(truncatingIfNeeded: Host.current.random()),
        namespace: processNamespace()), bootID()
    )
  }

  private static func hostName() -> String {
    var host = [CChar](repeating: 0, count: 256)
    guard gethostname(&host, host.count - 1) == 0 else { return "localhost" }
    return String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func processNamespace() -> String? {
    do throws(SpoolError) {
      return String(decoding: try System().readLink(AT_FDCWD, Path("/proc/self/ns/pid")), as: UTF8.self)
    } catch {
      return nil
    }
  }

  private static func bootID() -> String {
    // Where there is no /proc, "unknown" counts as another boot each time.
    do throws(SpoolError) {
      let file = try System().open(AT_FDCWD, Path("/proc/sys/kernel/random/boot_id"), O_RDONLY)
      var bytes = [UInt8](repeating: 0, count: 36)
      let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(SpoolError) in
        try file.read(into: UnsafeMutableRawBufferPointer(buffer), at: 0)
      }
      return count == 36 ? String(decoding: bytes, as: UTF8.self) : "unknown"
    } catch {
      return "unknown"
    }
  }
}
