internal import CLinux
internal import Glibc
internal import SystemPackage

/// What came of the wish to claim a job.
package enum ClaimOutcome {
  case claimed(Claim)
  /// Another worker has it, or it is gone: normal and silent.
  case lost
  /// It is still being written; look again later.
  case unfinished
  /// Its next attempt is at this second since the epoch.
  case notDue(Int64)
  /// It is no valid job and stands in `failed/` under this name now, with a record of the reason.
  case rejected(FileName, Defect)
  /// The kernel does not let this one file be looked at, taken or moved: it stays where it is. For what is no valid job there is a record in `failed/`.
  case barred(Defect)
}

extension Spool {
  /// A job file with its journal; more is no job.
  package static let maximumJobFile = 16 << 20

  /// Takes the job `name` from `origin` (`new`, `partial`, or `cur` for a take-over): lock, rename to a name of our own, confirm.
  /// - Parameters:
  ///   - now: the time by the clock of the spool's file system.
  ///   - isForced: also a job whose next attempt is not due.
  /// - Throws: ``SpoolError`` for what would stop every job.
  package func claim(_ name: FileName, from origin: Directory, now: Timestamp, isForced: Bool = false)
    throws(SpoolError)
    -> ClaimOutcome
  {
    do throws(SpoolError) {
      return try take(name, from: origin, now: now, isForced: isForced)
    } catch  where concernsOneFile(error, in: origin) {
      return .barred(Defect(line: nil, reason: "cannot be taken: \(error)"))
    }
  }

  private func take(_ name: FileName, from origin: Directory, now: Timestamp, isForced: Bool) throws(SpoolError)
    -> ClaimOutcome
  {
    let job: JobName
    if origin == .cur {
      guard let claim = ClaimName(name) else { return .lost }
      job = claim.job
      let status: FileStatus
      guard let found = try self.status(.cur, name) else { return .lost }
      status = found
      // flock alone proves nothing across hosts: on some file systems it succeeds for everyone.
      if claim.host != owner.host, status.modified + Self.lease > now.seconds {
        if status.modified > now.seconds + Self.lease { try beginLease(Path(origin, name)) }
        return .lost
      }
    } else {
      guard let valid = JobName(name) else {
        return try reject(
          name, from: origin, Defect(line: nil, reason: JobName.defect(of: name) ?? "its name starts with a dot"))
      }
      job = valid
    }
    let source = Path(origin, name)
    let found: FileStatus?
    do throws(SpoolError) {
      found = try self.status(origin, name)
    } catch  where error.errno == .permissionDenied && origin == .new {
      // Another user's file system may be mounted there (fuse(4)).
      return .barred(Defect(line: nil, reason: "cannot be looked at: \(error.errno)"))
    }
    guard let status = found else { return .lost }
    guard status.isRegular else {
      return try reject(name, from: origin, Defect(line: nil, reason: "not a regular file: a job is a plain text file"))
    }
    // Since it was found another worker may have had it, and parked it anew.
    if origin == .partial, !isForced, !Self.isDue(status.modified, at: now.seconds) { return .notDue(status.modified) }
    if try isInHand(job, from: origin) { return .lost }
    if origin == .new, try isBeingWritten(source, status, now: now) { return .unfinished }
    do throws(SpoolError) {
      return try claim(job, source, origin, now: now)
    } catch  where error.errno == .noSuchFileOrDirectory {
      return .lost
    } catch  where error.call == .open && error.errno == .wouldBlock {
      // Another worker holds a lease on it, just to see whether somebody is writing (open(2), O_NONBLOCK).
      return .lost
    } catch  where error.call == .open && Self.isNoRegularFile(error.errno) {
      // It took the place of the regular file that stood there a moment ago: the next scan sees what it is.
      return .lost
    } catch  where error.call == .open && error.errno == .permissionDenied {
      return try reject(name, from: origin, Defect(line: nil, reason: "cannot be read: \(error.errno)"))
    }
  }

  /// A heartbeat from the future, by a clock that was wrong, proves no life until then: the lease begins now, and a living owner renews it.
  private func beginLease(_ claim: Path) throws(SpoolError) {
    do throws(SpoolError) {
      let descriptor = try system.open(root, claim, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
      defer { _ = Glibc.close(descriptor) }
      try system.touch(descriptor, claim)
    } catch  where error.errno == .noSuchFileOrDirectory {
    }
  }

  /// Whether this worker has a job of this name, which keeps it until it has ended. Found out before the file is open for writing, see
  /// ``isBeingWritten(_:_:now:)``.
  private func isInHand(_ job: JobName, from origin: Directory) throws(SpoolError) -> Bool {
    if origin == .cur { return false }
    // Whatever keeps it from being read is for the claim to tell.
    let job = origin == .new ? Self.withoutOwner(job, try? self.job(.new, job.fileName)) : job
    if try status(.cur, ClaimName.fileName(job, owner)) == nil { return false }
    // Where data bears the name, a job from `new/` gets another one.
    if origin == .partial { return true }
    return try status(.partial, job.part) == nil
  }

  /// The name of a job in `new/`. If it was moved there from `cur/` with the owner's suffix left on, as its journal shows, that is no part of it.
  private static func withoutOwner(_ job: JobName, _ text: @autoclosure () -> JobText?) -> JobName {
    guard let claim = ClaimName(job.fileName), let owner = claim.owner, text()?.journal.lastStart?.worker == owner
    else { return job }
    return claim.job
  }

  /// What open(2) says of a symbolic link, a directory, a socket.
  private static func isNoRegularFile(_ errno: Errno) -> Bool {
    errno == .tooManySymbolicLinkLevels || errno == .isDirectory || errno == .noSuchAddressOrDevice
  }

  /// - Parameter isNamed: `source` is the claim's name already.
  private func claim(_ job: JobName, _ source: Path, _ origin: Directory, now: Timestamp, isNamed: Bool = false)
    throws(SpoolError)
    -> ClaimOutcome
  {
    let flags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let descriptor: Int32
    var isWritable = true
    do throws(SpoolError) {
      descriptor = try system.open(root, source, O_RDWR | flags)
    } catch  where [.permissionDenied, .notPermitted, .readOnlyFileSystem, .textFileBusy].contains(error.errno) {
      descriptor = try system.open(root, source, O_RDONLY | flags)
      isWritable = false
    }
    var isHandedOver = false
    defer { if !isHandedOver { System.release(descriptor) } }

    guard try system.lock(descriptor, source) else { return .lost }
    var status = try system.status(descriptor, path: source)
    guard status.isRegular else { return .lost }
    if status.links > 1, origin == .cur, try completeMove(job, source, status) { return .lost }
    if status.links > 1, try completeClaim(job, origin, source, status) {
      if origin == .new { return .lost }
      status = try system.status(descriptor, path: source)
    }
    if status.links > 1, origin == .partial {
      try removeClaims(of: job, source, status)
      status = try system.status(descriptor, path: source)
    }
    let (bytes, text, defect) = try readJob(descriptor, source, status, origin, now: now)
    let isOurs = isWritable && status.owner == geteuid() && status.links == 1
    guard let text else { return .unfinished }
    if !isOurs, status.size > Self.maximumJobFile, let defect, let name = source.name {
      // Not written to, because it may be anybody's file, nor copied: its record goes beside it.
      return try reject(name, from: origin, defect)
    }
    var job = origin == .new ? Self.withoutOwner(job, text) : job
    // Before the rename as well: whoever takes the claim over takes the data of its name for its own.
    if origin == .new, !isNamed, try isTaken(job, source) { job = try freeName(like: job) }
    let name = ClaimName.fileName(job, owner)
    let target = Path(.cur, name)
    // rename(2) would replace our own claim of another job of this name: that one comes first. It may be this very one, which this process let go
    // of when the spool failed under it.
    if !isNamed, source != target, try self.status(.cur, name) != nil { return .lost }
    let isRequeueNoted = origin == .new && isOurs && defect == nil && !text.journal.isEmpty
    if isRequeueNoted {
      // Before the rename: in cur/, a journal that ends in a failure says that the move to failed/ is still to be made.
      try noteRequeued(descriptor, source, text)
      status = try system.status(descriptor, path: source)
    }
    if !isNamed {
      // Before the rename: with the time of its last change, a claim would look like a dead worker's to other hosts. A file that is not ours gets
      // its time when it is replaced.
      if isOurs { try system.touch(descriptor, source) }
      do throws(SpoolError) {
        try system.rename(root, source, target)
      } catch  where Self.isImmovable(error.errno) {
        // Something else may have taken the name, and be nobody's to move: the next scan sees what it is.
        if try system.status(root, source).isSameFile(as: status) { throw error }
        return .lost
      }
    }
    // The name may have passed to another file between open and rename: then that file is not locked, and not the one we read.
    guard let moved = try self.status(.cur, name), moved.isSameFile(as: status) else {
      let outcome = try claim(job, target, origin, now: now, isNamed: true)
      // Its owner replaced it under our hands and still holds it: give it its name back, or the owner would think it lost.
      if case .lost = outcome { try giveBack(target, source) }
      return outcome
    }
    status = moved
    let claim = Claim(
      spool: self, job: job, origin: origin, path: target, descriptor: descriptor, identity: status, text: text,
      isRequeueNoted: isRequeueNoted)
    isHandedOver = true
    if !isOurs { try claim.replaceFile(by: bytes) }
    try claim.dropTornTail()
    if let defect {
      let record = FailureRecord(
        time: .now(), attempt: 0, failure: Failure(.malformed, defect.reason, line: defect.line), offset: 0,
        checksum: nil,
        fetched: 0, retry: nil)
      try claim.append(.failed(record))
      try claim.giveUp()
      return .rejected(claim.job.fileName, defect)
    }
    return .claimed(claim)
  }

  /// Whether a dropper is still at it, or another has its lock: by lease (fcntl(2) F_SETLEASE: only its file's owner or root may ask), else by age. All that would be
  /// looked at again is found out here, by a descriptor for reading: to close one for writing would be news of the file to a worker that watches, without end.
  private func isBeingWritten(_ path: Path, _ status: FileStatus, now: Timestamp) throws(SpoolError) -> Bool {
    let isYoung = Self.isYoung(status, at: now)
    let descriptor: Int32
    do throws(SpoolError) {
      descriptor = try system.open(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
    } catch
      where error.errno == .permissionDenied || error.errno == .noSuchFileOrDirectory
      || Self.isNoRegularFile(error.errno)
    {
      // The claim itself will say what is wrong with it.
      return false
    } catch  where error.errno == .wouldBlock {
      // Its writer holds a write lease on it (open(2), O_NONBLOCK).
      return true
    }
    defer { System.release(descriptor) }
    do throws(SpoolError) {
      try system.probeLease(descriptor, path)
    } catch  where error.errno == .resourceTemporarilyUnavailable {
      return true
    } catch {
      // Not this user's to ask: its age has to tell.
      if isYoung { return true }
    }
    // Something else may have taken the name: the claim itself will say what is wrong with it.
    let opened = try system.status(descriptor, path: path)
    guard opened.isRegular else { return false }
    // The last byte settles nearly all.
    if isYoung, try !endsInNewline(descriptor, path, opened),
      try readJob(descriptor, path, opened, .new, now: now).text == nil
    {
      return true
    }
    return try !system.lock(descriptor, path)
  }

  private func endsInNewline(_ descriptor: Int32, _ path: Path, _ status: FileStatus) throws(SpoolError) -> Bool {
    guard status.size > 0 else { return false }
    var last: UInt8 = 0
    let count = try withUnsafeMutableBytes(of: &last) { (buffer) throws(SpoolError) in
      try system.read(descriptor, path, into: buffer, at: status.size - 1)
    }
    return count == 1 && last == 0x0A
  }

  /// The job's text, and what is wrong with it; no text while it still lacks its last newline and is young.
  private func readJob(_ descriptor: Int32, _ path: Path, _ status: FileStatus, _ origin: Directory, now: Timestamp)
    throws(SpoolError)
    -> (bytes: [UInt8], text: JobText?, defect: Defect?)
  {
    let isHuge = status.size > Self.maximumJobFile
    let bytes = try read(descriptor, path, limit: isHuge ? JobText.maximumRequest : Self.maximumJobFile)
    let text = bytes.withUnsafeBytes { JobText($0) }
    if isHuge || text.isTooLong {
      return (bytes, text, Defect(line: nil, reason: "\(status.size) bytes: a job has at most 64 KiB"))
    }
    if text.hasTornTail && !text.isTornByWorker(in: origin) || status.size == 0 {
      // In sight of a defect no newline can mend, waiting helps nobody; but a cut line looks like one, so only the missing newline counts.
      if origin == .new, Self.isYoung(status, at: now) { return (bytes, nil, nil) }
      return (
        bytes, text,
        Defect(
          line: nil,
          reason: status.size == 0
            ? "empty: a job is at least one line with a URL" : "the last line has no newline: it may be cut short")
      )
    }
    return (bytes, text, text.defect)
  }

  /// A move by link and unlink that was cut in the middle: the file has its new name already, so the claim goes.
  private func completeMove(_ job: JobName, _ claim: Path, _ status: FileStatus) throws(SpoolError) -> Bool {
    for directory in [Directory.done, .failed, .partial] {
      // The number may be any, see ``number(ofTry:)``.
      let stream = try stream(directory)
      while let name = try stream.next() {
        guard name == job.fileName || job.isNumbered(as: name), let other = try self.status(directory, name),
          other.isSameFile(as: status)
        else { continue }
        try system.unlink(root, claim)
        return true
      }
    }
    return false
  }

  /// The rename from `new/` into `cur/`, cut by a power failure: btrfs can have made the second name durable and kept the first, for one file.
  /// - Returns: whether it was so; then the name in `new/` is gone.
  private func completeClaim(_ job: JobName, _ origin: Directory, _ source: Path, _ status: FileStatus)
    throws(SpoolError)
    -> Bool
  {
    switch origin {
    case .cur:
      guard let other = try self.status(.new, job.fileName), other.isSameFile(as: status) else { return false }
      try system.unlink(root, Path(.new, job.fileName))
      return true
    case .new:
      // A claim may have got a number. What was renamed to the claim's name already is not its own double.
      for name in try list(.cur) where Path(.cur, name) != source {
        guard let other = try self.status(.cur, name), other.isSameFile(as: status) else { continue }
        try system.unlink(root, source)
        return true
      }
      return false
    default: return false
    }
  }

  /// The same, seen from the new name: the claim that it was moved from goes.
  private func removeClaims(of job: JobName, _ source: Path, _ status: FileStatus) throws(SpoolError) {
    for name in try list(.cur) where ClaimName(name)?.job == job && Path(.cur, name) != source {
      if let other = try self.status(.cur, name), other.isSameFile(as: status) {
        try system.unlink(root, Path(.cur, name))
      }
    }
  }

  /// Undoes the claim's rename. Where another job has come to stand meanwhile, the file stays in `cur/`, to be taken over.
  private func giveBack(_ claim: Path, _ source: Path) throws(SpoolError) {
    do throws(SpoolError) {
      try moveNoReplace(claim, source)
    } catch  where error.errno == .noSuchFileOrDirectory || error.errno == .fileExists {
    }
  }

  /// Whether an older job bears this name, so that `NAME.part` is that one's.
  private func isTaken(_ job: JobName, _ source: Path) throws(SpoolError) -> Bool {
    let directories = [Directory.cur, .partial, .hold, .failed]
    // Of two claims without data, the first to lock it has the name (`PartFile.open`): so nobody has to look through `cur/` for one.
    guard try status(.partial, job.part) != nil else {
      return try !places(of: job.fileName, in: Array(directories.dropFirst())).isEmpty
    }
    // Held with its owner's suffix left on; or the very name, where `source` had one left on.
    if try list(.hold).contains(where: { ClaimName($0)?.job == job }) { return true }
    if source != Path(.new, job.fileName), try status(.new, job.fileName) != nil { return true }
    // In the order of a job's way and in the reverse: one that is parked between two looks is seen by one of the two.
    if try !places(of: job.fileName, in: directories).isEmpty { return true }
    return try !places(of: job.fileName, in: directories.reversed()).isEmpty
  }

  /// Begins a fresh budget of attempts for a job that came again through `new/`.
  private func noteRequeued(_ descriptor: Int32, _ path: Path, _ text: JobText) throws(SpoolError) {
    let bytes = Array(JournalLine.requeued(.now()).text.utf8)
    if text.hasTornTail { try system.truncate(descriptor, path, to: Int64(text.completeLength)) }
    let result: Result<Void, SpoolError> = bytes.withUnsafeBytes { buffer in
      Result { () throws(SpoolError) in try system.write(descriptor, path, buffer, at: Int64(text.completeLength)) }
    }
    try result.get()
  }

  // MARK: names that are taken

  /// How many names are tried before there is thought to be another reason why none is free.
  static let mostTries = 110

  /// The number for the `attempt`-th name: 2, 3, … and after the hundredth a random one. Whoever drops one name over and over could otherwise
  /// make each move look through all that came of it, and end the worker with the last number.
  static func number(ofTry attempt: Int) -> Int { attempt <= 100 ? attempt : .random(in: 101...999_999_999) }

  /// `NAME~2`, `NAME~3`, …: the first that no job has, or one at random where a hundred are taken.
  func freeName(like job: JobName) throws(SpoolError) -> JobName {
    let held = Set(try list(.cur).compactMap { ClaimName($0)?.job })
    for attempt in 2...Self.mostTries {
      let candidate = job.numbered(Self.number(ofTry: attempt))
      // Its own, where it ends in a number: another job has it, perhaps on its way from one directory to the next.
      if candidate == job || held.contains(candidate) { continue }
      if try status(.partial, candidate.part) != nil { continue }
      var isFree = true
      for directory in [Directory.new, .partial, .done, .failed, .hold]
      where try status(directory, candidate.fileName) != nil {
        isFree = false
      }
      if isFree { return candidate }
    }
    throw SpoolError(call: .rename, path: job.display, errno: .fileExists)
  }

  /// Renames the job file at `path` into `directory`, numbered where its name is taken: nothing there is ever replaced. Data goes along.
  func moveNumbered(_ path: Path, _ job: JobName, to directory: Directory) throws(SpoolError) -> JobName {
    var (target, owner) = (job, job)
    while true {
      // A job that is done has no data, and what bears its name may be another worker's.
      if target != owner, directory != .done { try moveData(of: owner, to: target) }
      owner = target
      do throws(SpoolError) {
        try moveNoReplace(path, Path(directory, target.fileName))
        return target
      } catch  where error.errno == .fileExists {
        target = try freeName(like: job)
      }
    }
  }

  private func moveData(of job: JobName, to target: JobName) throws(SpoolError) {
    let path = Path(.partial, job.part)
    _ = try withIdleData(path) { (_) throws(SpoolError) in try moveNoReplace(path, Path(.partial, target.part)) }
  }

  /// Where RENAME_NOREPLACE is unknown, link refuses an existing name everywhere; see ``completeMove`` for a crash between the two. The rename first:
  /// FAT knows it, and no links.
  /// - Parameter directory: an open directory that both are relative to; nil for the spool's own.
  func moveNoReplace(_ from: Path, _ to: Path, in directory: Int32? = nil) throws(SpoolError) {
    let directory = directory ?? root
    do throws(SpoolError) {
      try system.renameNoReplace(directory, from, to)
    } catch  where error.isUnknownRename {
      try system.link(directory, from, directory, to)
      // It has moved, and must not be moved elsewhere because its old name stays: that one goes by ``completeMove``.
      try? system.unlink(directory, from)
    }
  }

  // MARK: no jobs

  /// Puts what is no job into `failed/` as it is, with the record beside it: nothing dropped is deleted or ignored in silence.
  private func reject(_ name: FileName, from origin: Directory, _ defect: Defect) throws(SpoolError) -> ClaimOutcome {
    // `failed/NAME.part` is the place of a job's wrong data, which is replaced and removed.
    var target = name.isData ? name.suffixed("~1", limit: Self.maximumName) : name
    var attempt = 1
    while true {
      do throws(SpoolError) {
        // The record first: what has moved is not looked at again, and would stand there without one.
        try writeRecord(of: defect, beside: target)
        try moveNoReplace(Path(origin, name), Path(.failed, target))
        return .rejected(target, defect)
      } catch  where error.call == .rename && Self.isImmovable(error.errno) {
        return .barred(Defect(line: nil, reason: "\(defect.reason); and it cannot be moved: \(error.errno)"))
      } catch  where error.errno == .noSuchFileOrDirectory {
        return .lost
      } catch  where error.errno == .fileExists && attempt < Self.mostTries {
        attempt += 1
        target = name.numbered(Self.number(ofTry: attempt), limit: Self.maximumName)
      }
    }
  }

  /// Bytes of a directory entry's name (NAME_MAX, limits.h).
  private static let maximumName = 255

  /// Another user's directory, whose `..` would change, or a mount point (rename(2)).
  private static func isImmovable(_ errno: Errno) -> Bool {
    errno == .permissionDenied || errno == .notPermitted || errno == .resourceBusy
  }

  /// - Throws: EEXIST where `failed/` has something else of either name. A record alone is what a worker left that died before the move.
  private func writeRecord(of defect: Defect, beside target: FileName) throws(SpoolError) {
    let path = Path(.failed, target.record)
    // What is no job stands here by the name that a stranger gave it: a pipe would never be opened, a link leads elsewhere.
    let own = try system.status(root, Path(.failed)).owner
    if let other = try status(.failed, target.record), !other.isRegular || other.owner != own {
      throw SpoolError(call: .create, path: path.display, errno: .fileExists)
    }
    let found = try contents(path, limit: JobText.maximumRequest) ?? []
    // It may have died within the line.
    let isRecord = zip(found, Array("failed: ".utf8)).allSatisfy { $0 == $1 } && found.count { $0 == 0x0A } <= 1
    guard isRecord, try status(.failed, target) == nil else {
      throw SpoolError(call: .create, path: path.display, errno: .fileExists)
    }
    let record = FailureRecord(
      time: .now(), attempt: 0, failure: Failure(.malformed, defect.reason, line: defect.line), offset: 0,
      checksum: nil, fetched: 0,
      retry: nil)
    let descriptor = try system.create(root, path, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK)
    defer { _ = Glibc.close(descriptor) }
    let bytes = Array(JournalLine.failed(record).text.utf8)
    let result: Result<Void, SpoolError> = bytes.withUnsafeBytes { buffer in
      Result { () throws(SpoolError) in try system.write(descriptor, path, buffer, at: 0) }
    }
    try result.get()
  }
}
