/// A job's text, and what is wrong with it.
struct Judgement {
  let bytes: [UInt8]
  /// nil while the file lacks its last newline and is young.
  let text: JobText?
  var defect: Defect?
}

/// Claiming jobs for this process. Here: whether a file is a job, and when it may be claimed.
package struct Claims {
  let spool: Spool

  package init(_ spool: Spool) { self.spool = spool }

  /// The name of a job that was dropped. If it was moved there from `cur/` with the owner's suffix left on, as its
  /// journal shows, that suffix is no part of it.
  static func withoutOwner(_ job: JobName, _ text: @autoclosure () -> JobText?) -> JobName {
    guard let claim = ClaimName(job.fileName), let owner = claim.owner,
      text()?.journal.attempts.lastStart?.worker == owner.text
    else { return job }
    return claim.job
  }

  /// Reads the job. Its text is judged as it was read once, and is never read again from a file that another user can
  /// write to.
  func judge(_ file: SharedFile, _ status: FileStatus, _ origin: Directory, now: Timestamp)
    throws(SpoolError) -> Judgement
  {
    let isHuge = status.size > Spool.maximumJobFile
    let bytes = spool.believed(try file.read(first: isHuge ? JobText.maximumRequest : Int(status.size)), of: status)
    let text = bytes.withUnsafeBytes { JobText($0) }
    func invalid(_ reason: String) -> Judgement {
      Judgement(bytes: bytes, text: text, defect: Defect(line: nil, reason: reason))
    }
    if isHuge || text.isTooLong { return invalid("\(status.size) bytes: a job has at most 64 KiB") }
    if text.hasTornTail && !text.isTornByWorker(in: origin) || status.size == 0 {
      // A cut line may look like a defect, so the missing newline alone counts, whatever else is wrong.
      if origin.takesDrops, status.isYoung(at: now) { return Judgement(bytes: bytes, text: nil) }
      if status.size == 0 { return invalid("empty: a job is at least one line with a URL") }
      let what = bytes.contains(0) ? "zeros in place of a line" : "the last line has no newline"
      return invalid("\(what): the file may be incomplete")
    }
    return Judgement(bytes: bytes, text: text, defect: text.defect ?? text.request.misplacement(in: origin))
  }

  /// The longest wait for an attempt, in seconds: the longest Retry-After that is obeyed, and an hour for clocks that
  /// differ.
  static let longestWait: Int64 = 86_400 + 3600

  /// Whether a job in `partial/` with this time of modification may be tried. A time further ahead than any wait was
  /// set by a clock that was wrong.
  package static func isDue(_ modified: Int64, at now: Int64) -> Bool {
    modified <= now || modified > now + longestWait
  }

  /// Whether a file in `directory` with this time of modification may be claimed: only jobs in `partial` and orders in
  /// `standing` wait for a time.
  package func isDue(_ name: FileName, modified: Int64, in directory: Directory, at now: Int64) throws(SpoolError)
    -> Bool
  {
    switch directory {
    case .partial: return Self.isDue(modified, at: now)
    case .standing:
      if modified <= now + Self.longestWait { return modified <= now }
      // Only one that is checked rarely waits for so long, and perhaps one that this user may not read.
      guard let text = try spool.readableContents(Path(.standing, name)) else { return false }
      let every = text.withUnsafeBytes { JobText($0) }.request.standing.every ?? 0
      return modified > now + Int64(every) + Self.longestWait
    case .new, .urgent, .cur, .hold, .done, .failed, .tmp, .workers, .files: return true
    }
  }
}

/// Why a file in `new/` counts as still being written.
package enum Unfinished: Sendable {
  /// A process has it open for writing, or another worker looks at it.
  case inUse
  /// It has changed a moment ago, and the kernel does not say who has it open.
  case young
  /// It has changed a moment ago, and on this file system nobody can see who has it open: see
  /// ``FileSystemKind/leaseShowsAllWriters``.
  case unsettled
  case empty
  /// It has changed a moment ago, and its last line has no newline. Nobody has it open for writing, as far as the
  /// kernel says.
  case lacksNewline

  package var reason: String {
    switch self {
    case .inUse: "a process has it open for writing"
    case .unsettled:
      "it changed less than \(FileStatus.settlingTime) s ago, and this file system does not show who still writes it"
    case .young: "it changed less than \(FileStatus.settlingTime) s ago"
    case .empty: "it is empty"
    case .lacksNewline:
      "its last line has no newline: add one, or it goes to failed \(FileStatus.settlingTime) s after its last change"
    }
  }
}
