internal import Glibc
internal import Spool

/// What `spoolrun clean --archive` does.
enum ArchiveRun {
  /// - Parameter age: seconds after which a receipt is archived.
  /// - Returns: the exit status.
  static func run(_ location: String, age: Int64, _ system: System, say: @escaping (String) -> Void) -> Int32 {
    umask(0o077)
    let (owner, boot) = WorkerID.current()
    var isComplete = true
    do throws(SpoolError) {
      let spool = try Spool(location, owner: owner, boot: boot, system: system)
      var cleanup = Cleanup(spool) { finding in
        say("\(finding.kind.rawValue) \(finding.place) \(finding.count)")
        if finding.obstacle != nil { isComplete = false }
      }
      cleanup.archive = age
      try cleanup.run()
    } catch {
      say("\(error)")
      return 74
    }
    return isComplete ? 0 : 74
  }
}
