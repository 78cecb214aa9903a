internal import Glibc
internal import Spool

/// What `spoolrun clean --archive` does.
enum ArchiveRun {
  /// - Parameter age: seconds after which a receipt is archived.
  /// - Returns: the exit status.
  static func run(_ location: String, age: Int64, _ system: System, say: (String) -> Void) -> Int32 {
    umask(0o077)
    let (owner, boot) = WorkerID.current()
    var options = CleanupOptions()
    options.archive = age
    var isComplete = true
    do throws(SpoolError) {
      let spool = try Spool(location, owner: owner, boot: boot, system: system)
      try Cleanup.run(in: spool, options) { finding in
        say("\(finding.kind.rawValue) \(finding.place) \(finding.count)")
        if finding.obstacle != nil { isComplete = false }
      }
    } catch {
      say("\(error)")
      return error.isBusy ? 75 : 74
    }
    return isComplete ? 0 : 74
  }
}
