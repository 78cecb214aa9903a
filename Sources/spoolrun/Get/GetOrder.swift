internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// Makes sure that the spool has the job of one file, ready to run.
struct GetOrder {
  enum Outcome: Equatable {
    /// The job waits, or runs.
    case ordered
    /// The file is there, and its receipt fits.
    case isThere
    /// The reason why nothing was ordered.
    case refused(String)
  }

  private let spool: Spool
  private let item: GetItem
  private let request: JobRequest
  private let known: GetSpool

  init(_ known: GetSpool, _ item: GetItem) {
    (self.known, spool, self.item, request) = (known, known.spool, item, item.request)
  }

  /// Drops the job, or takes up the one that an earlier command left, with what this command asks for.
  func place() throws(SpoolError) -> Outcome {
    do throws(OutputRootProblem) {
      let reach = spool.isBesideFiles ? OutputReach.directly : item.reach
      _ = try CurrentOutputRoot(item.directory, spool: spool, reach: reach)
      if let former = known.former { _ = try CurrentOutputRoot(item.directory, spool: former, reach: .directly) }
    } catch {
      return .refused("\(error)")
    }
    if let outcome = try checkKnown() {
      // What an earlier command left that was to fetch it again.
      if outcome == .isThere {
        switch try JobStanding.of(item.job, in: spool) {
        case .absent, .done, .running: break
        case .waiting, .due, .retrying, .paused, .failed:
          _ = try Steering(spool).perform(.cancel, item.job.fileName)
        }
      }
      return outcome
    }
    try NamedRoots(spool).offer(item.directory, as: item.root)
    for _ in 0..<20 {
      do throws(SpoolError) {
        if let outcome = try tryPlacing() { return outcome }
      } catch  where error.errno == .noSuchFileOrDirectory {
        // The job has moved since it was seen.
        continue
      }
    }
    return .refused("its job \(item.job.display) keeps moving: try again")
  }

  /// Why the file cannot be put where it goes: nobody should have to wait for the whole of it to hear that. nil if it
  /// seems that it can, or the worker says the reason.
  private func obstacle() throws(SpoolError) -> String? {
    guard let output = OutputPath(item.name) else { return nil }
    let root = try OutputRoot(item.directory, spool: spool)
    do throws(SpoolError) {
      if try root.status(output)?.isDirectory == true { return "a directory has the name" }
      try root.checkWritable(output)
    } catch  where Self.closed.contains(error.errno) {
      return "cannot be written to \(root.path(of: output)): \(error.errno)"
    } catch {
      // Of a link in the path, for example, the worker says what is wrong.
    }
    return nil
  }

  private static let closed: Set<Errno> = [.permissionDenied, .notPermitted, .readOnlyFileSystem, .fileNameTooLong]

  /// - Returns: nil to look again.
  private func tryPlacing() throws(SpoolError) -> Outcome? {
    guard let place = try JobSearch(spool).places(of: item.job.fileName).last(where: { $0.directory != .standing })
    else {
      if let outcome = try checkArchived() { return outcome }
      if let obstacle = try obstacle() { return .refused(obstacle) }
      _ = try Drops(spool).drop(request.text, as: item.job)
      return .ordered
    }
    guard let old = try JobSearch(spool).job(place.directory, place.name) else { return nil }
    let news = old.request.text.exact == request.text.exact ? nil : request.text
    switch place.directory {
    case .done:
      if let outcome = try check(old) { return outcome }
    case .new, .urgent, .cur:
      if news == nil { return .ordered }
    case .partial:
      if news == nil {
        if let obstacle = try obstacle() { return .refused(obstacle) }
        _ = try Steering(spool).perform(.retry, item.job.fileName, in: .partial)
        return .ordered
      }
    case .hold, .failed, .tmp, .standing, .workers, .files: break
    }
    if let obstacle = try obstacle() { return .refused(obstacle) }
    try Steering(spool).requeue(place, as: item.job, asking: news)
    return .ordered
  }

  /// The same as ``check(_:)``, by what earlier commands have left of receipts.
  private func checkKnown() throws(SpoolError) -> Outcome? {
    // A newer one.
    if try spool.status(.done, item.job.fileName) != nil { return nil }
    if let found = known.receipts[String(decoding: item.job.fileName.bytes, as: UTF8.self).exact] {
      return try check(found.receipt, found.verified, isSame: found.verified.expectation.meets(request.expected))
    }
    guard let former = known.former, let job = try JobSearch(former).job(.done, item.job.fileName) else { return nil }
    return try check(job)
  }

  /// The same as ``check(_:)``, by the last receipt of the job that was archived.
  private func checkArchived() throws(SpoolError) -> Outcome? {
    var last: JobText?
    try Archive(spool).eachPath(named: [item.job.fileName]) { (path, _) throws(SpoolError) in
      last = try spool.jobContents(path)?.withUnsafeBytes { JobText($0) } ?? last
    }
    return try last.flatMap { (last) throws(SpoolError) in try check(last) }
  }

  /// Compares the file with the receipt of a job that is done.
  /// - Returns: nil to fetch the file, or to let the worker compare it with what is declared now.
  private func check(_ job: JobText) throws(SpoolError) -> Outcome? {
    guard let receipt = job.journal.publication.receipt, let verified = job.journal.publication.verified else {
      return nil
    }
    return try check(receipt, verified, isSame: job.request.expected == request.expected)
  }

  /// - Parameter isSame: whether that is what is asked for now.
  private func check(_ receipt: Journal.Receipt, _ verified: Journal.Verified, isSame: Bool) throws(SpoolError)
    -> Outcome?
  {
    if request.overwrite == true { return nil }
    switch try OutputRoot(item.directory, spool: spool).check(receipt, verified) {
    case .missing: return nil
    case .changed(let mismatch):
      return .refused(
        "is there, but has changed since it was fetched (\(mismatch.text)): remove it, or use --overwrite")
    case .unreadable(let error): throw error
    case .present, .sound: return isSame ? .isThere : nil
    }
  }
}
