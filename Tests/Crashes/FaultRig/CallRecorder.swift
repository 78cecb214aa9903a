internal import Glibc
internal import Spool

/// The record of all calls: a file of lines `PHASE TAB PID TAB KIND TAB INODE TAB PATH TAB NOTE`, each written at once,
/// so that it survives the process. Several processes may write to one record.
///
/// Phases: `*` the plan strikes here, `>` about to be made, `<` returned, `!` not made: failed with the error in NOTE.
/// INODE is that of the path at that moment, 0 where there is none, or where the path is relative to another directory
/// than the spool. Of two paths it is the first one's, and NOTE at `<` is the second one's. NOTE of a write or truncate
/// is `FROM-TO`, the bytes that it is about. NOTE at `*` is the number of the plan, from 0.
struct CallRecorder {
  private let descriptor: Int32
  private let root: Int32

  /// - Parameters:
  ///   - path: of the record; created where it is missing.
  ///   - spool: what the paths of most calls are relative to.
  init?(_ path: String, spool: String) {
    descriptor = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    root = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
  }

  func note(_ phase: Phase, _ call: Call, _ note: String = "") {
    let paths = call.path.split(separator: " ").map(String.init)
    var note = note
    if note.isEmpty, let range = call.range { note = "\(range.lowerBound)-\(range.upperBound)" }
    if phase == .returned, paths.count == 2 { note = "\(inode(paths[1]))" }
    let fields = [phase.rawValue, "\(getpid())", call.kind.rawValue, "\(inode(paths[0]))", call.path, note]
    let line = Array((fields.joined(separator: "\t") + "\n").utf8)
    // A record that cannot be written is found out by its reader, who misses calls in it.
    _ = write(descriptor, line, line.count)
  }

  enum Phase: String {
    case struck = "*"
    case begun = ">"
    case returned = "<"
    case failed = "!"
  }

  private func inode(_ path: String) -> UInt64 {
    var status = stat()
    let flags = path.hasPrefix("/proc/") ? 0 : AT_SYMLINK_NOFOLLOW
    return fstatat(root, path, &status, flags) == 0 ? UInt64(status.st_ino) : 0
  }
}
