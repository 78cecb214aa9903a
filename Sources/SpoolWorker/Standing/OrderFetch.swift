internal import Spool
internal import Transfer

/// Fetches the list of a standing order as part of an attempt, which may be stopped.
extension Attempt {
  /// - Returns: the file that has the list, unless that is unchanged.
  func fetchList(_ request: JobRequest, _ mirrors: [MirrorURL]) async throws -> (ListFetch.Outcome, ScratchFile) {
    guard let first = mirrors.first else { throw Failure(.malformed, "a standing order needs a URL") }
    try noteCheckStarted(first.parts)
    let file = try ScratchFile(claim.spool)
    let fetch = ListFetch(request, mirrors, known: claim.text.journal.checks.version, environment, id: id << 6)
    download = fetch
    defer {
      account.fetched += fetch.fetched
      download = nil
    }
    do {
      if let stopped { throw stopped }
      return (try await fetch.run(into: file), file)
    } catch {
      // The fetch only knows that it was stopped; this attempt knows why.
      throw stopped ?? error
    }
  }

  private func noteCheckStarted(_ url: URLParts) throws(SpoolError) {
    let spool = claim.spool
    try claim.append(
      .started(
        .now(), attempt: account.number, worker: spool.owner, boot: spool.boot, mirror: 1, url: url.redacted,
        afterFreeze: claim.formerOwner == .mayWake))
    probation.begin(at: LoopExecutor.milliseconds())
    let fields = Fields().with("attempt", account.number).with("at", 0).with("url", url.redacted)
    log(Event("started", .info, job: name, fields))
  }
}
