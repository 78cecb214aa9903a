internal import Glibc
internal import SystemPackage

/// What is no job goes to `failed/`.
extension Claims {
  /// Moves a file that is not a job to `failed/` unchanged, with a record beside it: nothing that was dropped is
  /// deleted or ignored in silence.
  func reject(_ name: FileName, from origin: Directory, _ defect: Defect) throws(SpoolError) -> ClaimOutcome {
    // `failed/NAME.part` is the place of a job's wrong data, which is replaced and removed.
    var target = name.isData ? name.suffixed("~1", limit: FileName.maximumLength) : name
    var attempt = 1
    while true {
      do throws(SpoolError) {
        // The record first: what has moved is not looked at again, and would have none.
        try writeRecord(of: defect, beside: target)
        try spool.moveNoReplace(Path(origin, name), Path(.failed, target))
        return .rejected(target, defect)
      } catch  where error.call == .rename && error.isImmovable {
        return .barred(Defect(line: nil, reason: "\(defect.reason); and it cannot be moved: \(error.errno)"))
      } catch  where error.errno == .noSuchFileOrDirectory {
        try spool.checkDirectories()
        return .unavailable
      } catch  where error.errno == .fileExists && attempt < JobSearch.mostTries {
        attempt += 1
        target = name.numbered(JobSearch.number(ofTry: attempt), limit: FileName.maximumLength)
      }
    }
  }

  /// The journal's line about what is no valid job.
  func record(of defect: Defect) -> JournalLine {
    .failed(
      FailureRecord(
        time: spool.now(), attempt: 0, failure: Failure(.malformed, defect.reason, line: defect.line), mark: nil,
        fetched: 0, retry: nil))
  }

  /// - Throws: ``SpoolError``, EEXIST where `failed/` has something else of either name. A record alone was left by a
  ///   worker that died before the move.
  private func writeRecord(of defect: Defect, beside target: FileName) throws(SpoolError) {
    let path = Path(.failed, target.record)
    // A thing that is no job is here by the name that a stranger gave it: a pipe would never open, a link leads
    // elsewhere.
    let own = try spool.system.status(spool.root, Path(.failed)).owner
    if let other = try spool.status(.failed, target.record), !other.isRegular || other.owner != own {
      throw SpoolError(call: .create, path: path.display, errno: .fileExists)
    }
    let found = try spool.contents(path, limit: JobText.maximumRequest) ?? []
    guard JobLines.isRecord(found, orBeginsOne: true), try spool.status(.failed, target) == nil else {
      throw SpoolError(call: .create, path: path.display, errno: .fileExists)
    }
    let file = try spool.system.create(spool.root, path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK)
    try file.write(Array(record(of: defect).text.utf8), at: 0)
  }
}

extension SpoolError {
  /// The error of a rename for another user's directory, whose `..` would change, and of a mount point (rename(2)).
  var isImmovable: Bool { errno == .permissionDenied || errno == .notPermitted || errno == .resourceBusy }
}
