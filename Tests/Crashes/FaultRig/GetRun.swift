internal import Glibc
internal import Spool
internal import SpoolWorker

/// What `spoolrun get` does with the spool that it makes beside its file.
struct GetRun {
  /// The directory of the file.
  let parent: String
  /// Where the records are.
  let state: String
  let job: JobName
  let text: String
  let system: System

  /// - Returns: the exit status.
  func run(_ options: WorkerOptions, say: @escaping @Sendable (String) -> Void) -> Int32 {
    umask(0o077)
    do {
      let records = GetRecords(state, system: system)
      guard case .opened(let directory) = try GetDirectory.open(in: parent, records) else { return 73 }
      let (owner, boot) = WorkerID.current()
      let location = GetDirectory.location(in: parent)
      let spool = try Spool(location, owner: owner, boot: boot, system: system, settings: [], isBesideFiles: true)
      guard directory.isDirectory(of: spool) else { return 74 }
      _ = try FileSystemTrial(spool).run()
      try NamedRoots(spool).offer(parent, as: NamedRoots.name(for: parent))
      _ = try Drops(spool).drop(text, as: job)
      var options = options
      (options.only, options.endsWhenDone) = ([job.fileName], true)
      let outcome = WorkerLoop.run { [options] () async -> Int32 in
        do {
          let summary = try await Worker(spool, options) { say("\($0.name) \($0.fields.text)") }.watch(stopSignals: -1)
          return summary.done == 1 ? 0 : 75
        } catch {
          say("\(error)")
          return 74
        }
      }
      if try !directory.removeIfDone(spool), outcome == 0 { return 70 }
      return outcome
    } catch {
      say("\(error)")
      return 74
    }
  }
}
