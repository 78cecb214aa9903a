internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import Synchronization

struct ListedReceipt: Sendable {
  let name: FileName
  /// nil for one in `done`.
  var archived: Path?
  /// The command line says so. Otherwise it may have been archived since it was listed.
  var isNamed = false

  var path: Path { archived ?? Path(.done, name) }

  /// Why a job has no receipt that can be used, for a person.
  private struct Missing: Error {
    let text: String
    /// Whether it was there when `done` was listed.
    var hasMoved = false
  }

  /// What `check` says of the receipt. An error, such as a disk that is not mounted, concerns only this job.
  /// - Parameter trouble: what an error means.
  /// - Parameter isLine: whether a receipt that cannot be used is told among the answers.
  func answer(
    _ spool: Spool, trouble: String = "cannot be checked", isLine: Bool = false,
    check: (_ name: String, Journal.Done, Path) throws -> VerifyAnswer
  ) -> VerifyAnswer {
    let text: String
    do {
      let (path, done) = try read(spool)
      return try check(name.display, done, path)
    } catch let missing as Missing {
      if missing.hasMoved {
        return VerifyAnswer(isMoved: true, problem: "\(name.display): left done meanwhile, and is not checked")
      }
      text = "\(name.display): \(missing.text)"
    } catch {
      text = "\(name.display): \(trouble): \(error)"
    }
    return VerifyAnswer(isGood: false, line: isLine ? text : nil, problem: isLine ? nil : text)
  }

  /// - Returns: with its path, which may be another one since it was listed.
  private func read(_ spool: Spool) throws -> (Path, Journal.Done) {
    guard JobName(name) != nil, let (path, job) = try find(spool) else {
      var missing = Missing(text: "no such receipt in done")
      if !isNamed { missing.hasMoved = try spool.status(.done, name) == nil }
      throw missing
    }
    guard let done = job.journal.publication.done, OutputPath(done.receipt.output) != nil else {
      throw Missing(text: "no receipt: the job file says neither `verified:` nor `done:`")
    }
    return (path, done)
  }

  fileprivate func place(in spool: Spool) -> [ExactText?]? { (try? read(spool))?.1.receipt.place }

  private func find(_ spool: Spool) throws(SpoolError) -> (Path, JobText)? {
    func job(_ path: Path) throws(SpoolError) -> (Path, JobText)? {
      try spool.jobContents(path).map { (path, $0.withUnsafeBytes { JobText($0) }) }
    }
    if let found = try job(path) { return found }
    if isNamed || archived != nil { return nil }
    // Of several of the name, the newest. The number of its directory may be a random one.
    var found: [(Path, JobText)] = []
    try Archive(spool).eachPath(named: [name]) { (path, _) throws(SpoolError) in
      if let one = try job(path) { found.append(one) }
    }
    func time(_ job: JobText) -> Int64 { job.journal.publication.receiptTime?.seconds ?? 0 }
    return found.max { time($0.1) < time($1.1) }
  }
}

/// The receipts of a spool: first those in `done`, in the order of their names, then those that are archived.
final class ReceiptList {
  private var receipts: ArraySlice<ListedReceipt>

  init(_ spool: Spool, named names: [FileName]?) throws(SpoolError) {
    var archived: [ListedReceipt] = []
    var wanted: Set<FileName>?
    if let names {
      wanted = []
      for name in names where try spool.status(.done, name) == nil { wanted?.insert(name) }
    }
    let done: [FileName]
    if let names { done = names } else { done = try spool.list(.done).sorted() }
    try Archive(spool).eachPath(named: wanted) {
      archived.append(ListedReceipt(name: $1, archived: $0, isNamed: names != nil))
    }
    // A name that is nowhere is looked for in `done` all the same, and said to be missing there.
    let known = names == nil ? [] : Set(archived.map(\.name))
    receipts =
      (done.filter { !known.contains($0) }.map { ListedReceipt(name: $0, isNamed: names != nil) } + archived)[...]
  }

  var count: Int { receipts.count }

  /// The places of their payloads, as ``Journal/Receipt/place`` has them.
  func places(in spool: Spool) -> @Sendable () -> [[ExactText?]] {
    { [receipts] in receipts.compactMap { $0.place(in: spool) } }
  }

  func next() -> ListedReceipt? { receipts.popFirst() }
}

/// Reads payloads again and compares them with their receipts. On any thread.
struct PayloadReader: Sendable {
  let spool: Spool
  /// Where the payloads are; nil for the directory that each receipt names.
  let directory: String?
  /// Whether sound payloads have a line as well.
  let isVerbose: Bool
  /// Whether to get what is damaged again.
  var refetches = false
  /// Whether what is gone is only asked for again, whatever the receipt says of it.
  var isRetry = false
  let receipts: AllReceipts
  let progress: VerifyProgress

  /// The list of the pieces of a payload that is sound (spool.5, PIECES).
  func pieces(_ listed: ListedReceipt) -> VerifyAnswer {
    listed.answer(spool) { name, found, _ in
      var maker = PieceList.Maker(size: found.verified.size)
      let flaw = try flaw(found) { maker.take($0) }
      let list = flaw == nil ? maker.list() : nil
      if let list { return VerifyAnswer(line: String(decoding: list.text.dropLast(), as: UTF8.self)) }
      return VerifyAnswer(isGood: false, problem: "\(name): \(flaw?.text ?? "a file without bytes has no pieces")")
    }
  }

  func answer(_ listed: ListedReceipt) -> VerifyAnswer {
    listed.answer(spool, isLine: true) { name, found, path in
      if let flaw = try flaw(found) {
        // The newer job's file is right where it is, and is checked by its own receipt.
        if let other = try receipts.successor(of: found.receipt, found.time, listed.name) {
          return VerifyAnswer(isReplaced: true, line: "\(name): replaced since by \(other)")
        }
        // The hook may have moved the file on. Where a person says that the files are elsewhere, it should be there.
        if flaw.isMissing, found.receipt.isDelivered, directory == nil, !isRetry {
          return VerifyAnswer(
            isDelivered: true, line: isVerbose ? "\(name): delivered: \(escaped(found.receipt.output))" : nil)
        }
        let (next, isAgain) = refetches ? refetch(listed, path, found, flaw) : ("", false)
        return VerifyAnswer(isGood: false, isDamaged: true, isAgain: isAgain, line: "\(name): \(flaw.text)\(next)")
      }
      let isWanted = isVerbose || found.receipt.unproven != nil
      return VerifyAnswer(line: isWanted ? "\(name): \(sound(found))" : nil)
    }
  }

  /// - Returns: what came of it, as the end of a line; whether the job is to run again.
  private func refetch(_ listed: ListedReceipt, _ path: Path, _ found: Journal.Done, _ flaw: Flaw) -> (String, Bool) {
    do {
      let directory = found.receipt.directory
      // The directory of a disk that is not mounted is empty.
      if flaw.isMissing, !listed.isNamed, try !receipts.isAnyThere(below: directory) {
        let place = directory.map { escaped($0) } ?? Directory.files.rawValue
        return ("; not put into new: \(place) has none of its files; if its disk is mounted, name the job", false)
      }
      let job = try JobName(listed.name).flatMap { try JobSearch(spool).places(of: $0.fileName, in: [.done]).first }
      if isRetry, flaw.isMissing, let job, let name = JobName(listed.name) {
        try Steering(spool).requeue(job, as: name)
      } else {
        try Steering(spool).refetch(path, listed.name, found.verified)
      }
      return ("; in new now, to be fetched again", true)
    } catch {
      return ("; cannot be put into new: \(error)", false)
    }
  }

  private struct Flaw {
    let text: String
    var isMissing = false
  }

  /// What is wrong with the payload; nil if nothing is.
  private func flaw(_ found: Journal.Done, _ take: (UnsafeRawBufferPointer) -> Void = { _ in }) throws(SpoolError)
    -> Flaw?
  {
    let check = try progress.following(found) { (note) throws(SpoolError) in
      try OutputRoot(directory ?? found.receipt.directory, spool: spool).check(found.receipt, found.verified) { bytes in
        note(bytes)
        take(bytes)
      }
    }
    switch check {
    case .missing: return Flaw(text: "missing: \(escaped(found.receipt.output))", isMissing: true)
    case .changed(let mismatch): return Flaw(text: "changed: \(escaped(found.receipt.output)): \(mismatch.text)")
    case .unreadable(let error): return Flaw(text: "unreadable: \(escaped(found.receipt.output)): \(error.errno)")
    case .present, .sound: return nil
    }
  }

  private func sound(_ found: Journal.Done) -> String {
    let digests = Fields().with(found.verified.digests).text
    let unproven = found.receipt.unproven.map { " unproven=\(escaped($0))" } ?? ""
    return "sound: \(escaped(found.receipt.output)) size=\(found.verified.size) \(digests)\(unproven)"
  }
}

/// The digests that `verify --sums` prints.
enum SumFormat: String, ExpressibleByArgument, CaseIterable, Sendable {
  case sha256, sha512, sha1, md5, blake2b, sha3 = "sha3-256", sfv

  init?(argument: String) { self.init(rawValue: argument == "crc32" ? "sfv" : argument) }

  var algorithm: DigestAlgorithm { DigestAlgorithm(rawValue: rawValue) ?? .crc32 }
}

/// Makes lines for sha256sum(1), cksfv(1) and the like from receipts. Reads no payload. On any thread.
struct SumList: Sendable {
  let spool: Spool
  /// The directory that all paths are relative to; nil for `files`, and then other payloads have absolute paths.
  let directory: String?
  let format: SumFormat
  let style: SumLine.Style
  /// A terminal gets no bytes that control it. A file gets names as they are.
  private let isForTerminal = isatty(STDOUT_FILENO) == 1

  func answer(_ listed: ListedReceipt) -> VerifyAnswer {
    listed.answer(spool, trouble: "cannot be read") { name, found, _ in
      guard let digest = found.verified.digests[format.algorithm] else {
        return Self.problem(name, "its receipt has no \(format.algorithm.rawValue)")
      }
      guard let line = SumLine(digest, path(found), style) else {
        return Self.problem(name, "the list cannot have a path with a line break")
      }
      return VerifyAnswer(line: shown(line.text))
    }
  }

  private func path(_ found: Journal.Done) -> String {
    guard directory == nil, let place = found.receipt.directory else { return found.receipt.output }
    return "\(place)/\(found.receipt.output)"
  }

  private func shown(_ line: String) -> String {
    let controls = isForTerminal && line.unicodeScalars.contains { $0 != "\\" && isUnsafeForDisplay($0) }
    return controls ? escaped(line) : line
  }

  private static func problem(_ name: String, _ text: String) -> VerifyAnswer {
    VerifyAnswer(isGood: false, problem: "\(name): \(text)")
  }
}

struct VerifyAnswer: Sendable {
  var isGood = true
  /// The payload is missing, has changed or cannot be read.
  var isDamaged = false
  /// The directory of a get's file that is there.
  var place: String?
  /// A file that `verify --refetch` gets itself.
  var again: GetRecords.Fetched?
  var isAgain = false
  /// A newer job has replaced the payload.
  var isReplaced = false
  /// The hook `deliver` has accepted the payload, and it is not there any more.
  var isDelivered = false
  /// The receipt is where no receipts are, such as of a job that is to run again.
  var isMoved = false
  /// For standard output; nil for nothing.
  var line: String?
  /// For standard error; nil for nothing.
  var problem: String?
}

/// How far `verify` is. Several threads count, one looks.
final class VerifyProgress: Sendable {
  private let state = Mutex(VerifyPicture.Progress(files: 0))

  var now: VerifyPicture.Progress { state.withLock { $0 } }
  func count(_ change: (inout VerifyPicture.Progress) -> Void) { state.withLock { change(&$0) } }

  /// Counts a file that is checked, and its bytes.
  /// - Parameter check: calls what it is given with each block that was read.
  func following(
    _ done: Journal.Done, _ check: (_ note: (UnsafeRawBufferPointer) -> Void) throws(SpoolError) -> PayloadCheck
  ) throws(SpoolError) -> PayloadCheck {
    let size = done.verified.size
    var read: UInt64 = 0
    count { progress in
      progress.begun += 1
      progress.known &+= size
    }
    // A file that has changed need not be read any further.
    defer { count { $0.read &+= size > read ? size - read : 0 } }
    return try check { bytes in
      read += UInt64(bytes.count)
      count { $0.read &+= UInt64(bytes.count) }
    }
  }
}
