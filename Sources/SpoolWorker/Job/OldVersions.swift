internal import Spool

/// Removes what a subscription does not keep any more: when one of its jobs is done, and at each check.
struct OldVersions {
  let spool: Spool
  let log: @Sendable (Event) -> Void
  let stop: ChildStop

  /// Those of the subscription that drops jobs of such a name, if one does (``FeedEntry/isKeyed(_:)``); the jobs of
  /// a get are called alike. What goes wrong here is no failure of it.
  @WorkerLoop func remove(after job: JobName) async {
    do throws(SpoolError) {
      let outcomes = try await runBlocking { [spool, stop] () throws(SpoolError) in
        let versions = try KeptVersions(spool, of: job) { JobPlan.output(of: $0) }
        return try versions?.trim { stop.isRequested } ?? []
      }
      for outcome in outcomes {
        let facts = Fields().with("output", outcome.receipt.output).with("directory", outcome.receipt.directory)
        if let reason = outcome.reason {
          log(Event("not-removed", .warning, job: outcome.job, facts.with("reason", reason)))
        } else {
          log(Event("removed", .info, job: outcome.job, facts.with("size", outcome.size)))
        }
      }
    } catch {
      log(Event("not-removed", .warning, Fields().with("reason", "\(error)")))
    }
  }
}
