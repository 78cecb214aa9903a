internal import Spool
internal import SpoolStatus
internal import SystemPackage

/// Makes sure that the spool has the job of one file, ready to run.
struct GetOrder {
  private let spool: Spool
  private let item: GetItem
  private let request: JobRequest
  private let known: GetSpool
  private let roots: NamedOutputRoots

  init(_ known: GetSpool, _ item: GetItem, _ roots: NamedOutputRoots) {
    (self.known, spool, self.item, request, self.roots) = (known, known.spool, item, item.request, roots)
  }

  /// Looks whether anything is to be ordered. This may read a large file, so it is done without a lock.
  /// - Returns: nil if a job is needed.
  func look() throws(SpoolError) -> GetEnd? {
    do throws(OutputRootProblem) {
      _ = try root()
      if let former = known.former { _ = try CurrentOutputRoot(item.directory, spool: former, reach: .directly) }
    } catch {
      return .refused("\(error)")
    }
    return try check()
  }

  private func root() throws(OutputRootProblem) -> OutputRoot {
    try roots.root(at: item.directory, spool.isBesideFiles ? .directly : item.reach).root
  }

  /// Takes up the job that an earlier command left, with what this command asks for. If there is none, it is added to
  /// `missing`.
  /// - Returns: nil if the job waits or runs, or is missing.
  func place(or missing: inout [(text: String, name: JobName)]) throws(SpoolError) -> GetEnd? {
    try NamedRoots(spool).offer(item.directory, as: item.root)
    for _ in 0..<20 {
      do throws(SpoolError) {
        return try tryPlacing(or: &missing)
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
    let root: OutputRoot
    do throws(OutputRootProblem) { root = try self.root() } catch { return "\(error)" }
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

  /// - Throws: ``SpoolError``, ENOENT if the job has moved since it was seen.
  private func tryPlacing(or missing: inout [(text: String, name: JobName)]) throws(SpoolError) -> GetEnd? {
    guard let place = try JobSearch(spool).places(of: item.job.fileName).last(where: { $0.directory != .standing })
    else {
      if let obstacle = try obstacle() { return .refused(obstacle) }
      missing.append((request.text, item.job))
      return nil
    }
    guard let old = try JobSearch(spool).job(place.directory, place.name) else {
      throw SpoolError(call: .open, path: item.job.display, errno: .noSuchFileOrDirectory)
    }
    var request = request
    if item.again == nil, old.request.knownURL?.exact != request.knownURL?.exact {
      Terminal.error("\(escaped(item.shown)): goes on with the URL that `spoolrun url` has given it", .info)
      // The job is called after the URL of this command, so `spoolrun url` has given it another one since.
      (request.urls, request.resolve) = (old.request.urls, old.request.resolve)
    }
    let isSame =
      item.again.map { old.request.overwrite == true && old.request.expected.meets($0.expectation) }
      ?? (old.request.text.exact == request.text.exact)
    switch place.directory {
    case .done: if let end = try check() { return end }
    case .new, .urgent, .cur: if isSame { return nil }
    case .partial:
      if isSame {
        if let obstacle = try obstacle() { return .refused(obstacle) }
        _ = try Steering(spool).perform(.retry, item.job.fileName, in: .partial)
        return nil
      }
    case .hold, .failed, .tmp, .standing, .workers, .files: break
    }
    if let obstacle = try obstacle() { return .refused(obstacle) }
    if let again = item.again {
      try Steering(spool).refetch(place, again)
    } else {
      try Steering(spool).requeue(place, as: item.job, asking: isSame ? nil : request.text)
    }
    return nil
  }

  /// The newest receipt of the job: in the spool, in its archive, of a spool that was taken away, or of version 0.2.
  private func newest() throws(SpoolError) -> Journal.Done? {
    let name = item.job.fileName
    var found = [try JobSearch(spool).job(.done, name)?.journal.publication.done]
    try Archive(spool).eachPath(named: [name]) { (path, _) throws(SpoolError) in
      found.append(try spool.jobContents(path)?.withUnsafeBytes { JobText($0) }.journal.publication.done)
    }
    found.append(known.receipts[name])
    if let former = known.former { found.append(try JobSearch(former).job(.done, name)?.journal.publication.done) }
    // Of one second, the first.
    return found.compactMap(\.self).max { ($0.time?.seconds ?? 0) < ($1.time?.seconds ?? 0) }
  }

  /// Compares the file with its newest receipt.
  /// - Returns: nil to fetch the file, or to let the worker compare it with what is declared now.
  private func check() throws(SpoolError) -> GetEnd? {
    guard let newest = try newest() else { return nil }
    let isSame = newest.verified.expectation.meets(request.expected)
    // To replace a sound file that has a declared digest could only give the same bytes.
    let replaces = request.overwrite == true
    if replaces, request.expected.digests.isEmpty || !isSame { return nil }
    let root: OutputRoot
    do throws(OutputRootProblem) { root = try self.root() } catch { return .refused("\(error)") }
    let again = "remove it, or use --overwrite"
    let found: PayloadCheck
    do throws(SpoolError) {
      found = try root.check(newest.receipt, newest.verified)
    } catch {
      if replaces { return nil }
      // The other files of the command are none the worse for it.
      return .refused("is there, but cannot be compared with its receipt: \(error); \(again)")
    }
    switch found {
    case .missing: return nil
    case .changed where replaces, .unreadable where replaces: return nil
    case .changed(let mismatch):
      let isNoted = isSame && spool.isBesideFiles && GetRecords.Fetched.secrets(of: request) == nil
      // A mere name would be that of a job.
      let path = ShellWords.quoted(item.shown.utf8.contains(0x2F) ? item.shown : "./\(item.shown)")
      let repair = isNoted ? "remove it, use --overwrite, or `spoolrun verify --refetch \(path)`" : again
      return .refused("is there, but has changed since it was fetched (\(mismatch.text)): \(repair)")
    case .unreadable(let error):
      return .refused("is there, but cannot be read (\(error.errno)): \(again)")
    case .present, .sound: return isSame ? .isThere : nil
    }
  }
}
