/// A job file's text, read: what it asks for, what has happened to it, what is wrong with it.
package struct JobText: Sendable {
  /// The most bytes that a request may have, up to the first journal line.
  package static let maximumRequest = 64 * 1024

  /// A standing order's job says by this line that the list chose a URL which does not encrypt: what is for its host
  /// alone, such as a login, goes there only over a channel that does. A comment, because it can only forbid, and older
  /// workers refuse a key that they do not know.
  static let offeredLine = "# no secrets in the clear"

  /// The text of a job, or of its first lines, with ``offeredLine``.
  package static func offered(_ text: String) -> String { "\(offeredLine)\n\(text)" }

  /// By a line that begins so, and goes on with a CRC-32, the job of a standing order says the URL of which list it is
  /// of: it is the same whatever its own URL, and none of another list whose order has the same name.
  private static let listStart = "# of the list "

  package static func ofList(_ url: String, _ text: String) -> String { "\(listStart)\(Checksum(of: url))\n\(text)" }

  /// What the line says; nil without one.
  private(set) var list: ExactText?
  package private(set) var request = JobRequest()
  package private(set) var journal = Journal()
  /// The first defect; nil for a valid job.
  package private(set) var defect: Defect?
  /// Bytes up to and with the last newline. A line without one did not happen, or is still being written.
  package private(set) var completeLength = 0
  package private(set) var hasTornTail = false
  /// Whether the tail is the beginning of a journal line, or zeros that a power cut left in its place: the file got its
  /// length, but not its data.
  package var tornTailIsJournal: Bool { !isTooLong && (hasTornTail && !journal.isEmpty || tailBeginsJournal) }
  /// Whether the tail begins as a line of the journal does, so that a worker has written it: a person may add to a job
  /// that has a journal.
  private(set) var tailBeginsJournal = false

  /// The request is longer than ``maximumRequest``; the rest, which is the torn tail then, was not read.
  package private(set) var isTooLong = false

  private var bareURLs = 0

  /// - Parameter isDefaults: whether this is the file `defaults`, which has no keys of one job and no journal.
  package init(_ bytes: UnsafeRawBufferPointer, defaults isDefaults: Bool = false) {
    var inJournal = false
    for line in JobLines(bytes) {
      if !line.isComplete || !isDefaults && line.isLost(inJournal: inJournal) {
        (hasTornTail, tailBeginsJournal) = (true, line.mayBeginJournal)
        break
      }
      let isJournal = read(line, inJournal: inJournal, isDefaults: isDefaults)
      inJournal = inJournal || isJournal
      completeLength = line.range.upperBound
      if !inJournal, completeLength > Self.maximumRequest {
        (isTooLong, hasTornTail) = (true, completeLength < bytes.count)
        note(Defect(line: line.number, reason: "a job has at most 64 KiB"))
        readLastLine(bytes)
        break
      }
    }
    if !isDefaults { noteURLs() }
  }

  /// The text without the lines that set one of these keys.
  package static func without(_ keys: Set<String>, _ bytes: [UInt8]) -> [UInt8] {
    JobLines.kept(of: bytes) { !$0.sets(keys) }
  }

  /// The text without what a worker's crash left of a journal line, which did not happen.
  static func withoutTornLine(_ bytes: [UInt8]) -> [UInt8] {
    if bytes.last == 0x0A, !bytes.contains(0) { return bytes }
    let text = bytes.withUnsafeBytes { JobText($0) }
    return text.tailBeginsJournal ? Array(bytes[..<text.completeLength]) : bytes
  }

  /// Whether the torn tail is a line that a worker wrote, and so did not happen. A job from a directory for drops that
  /// has a journal may have a torn line from a person, who still writes it or was interrupted. Any other job was whole
  /// when it was claimed.
  func isTornByWorker(in origin: Directory) -> Bool {
    tornTailIsJournal && (!origin.takesDrops || tailBeginsJournal && !journal.isEmpty)
  }

  /// Why a job that is too long was given up is what its last line says.
  private mutating func readLastLine(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.last == 0x0A, let end = bytes.dropLast().lastIndex(of: 0x0A),
      let line = JobLines(UnsafeRawBufferPointer(rebasing: bytes[(end + 1)...])).first(where: \.isComplete),
      line.journal?.key == .failed
    else { return }
    _ = read(line, inJournal: true, isDefaults: false)
  }

  private mutating func note(_ defect: Defect) { self.defect = self.defect ?? defect }

  private mutating func noteURLs() {
    if request.urls.isEmpty {
      if let resolve = request.resolve {
        // The name must be the same in each attempt, so it is not the hook's.
        if request.output?.isDirectory ?? true {
          note(Defect(line: resolve.number, reason: "resolve: a job without a URL needs `output:` with a file name"))
        }
      } else {
        note(Defect(line: nil, reason: "no URL: a job is at least one line with a URL"))
      }
    }
    if bareURLs > 1 {
      note(
        Defect(
          line: nil,
          reason: "several bare URLs: one file per job, or `url:` before each if they are mirrors of one file"))
    }
  }

  /// Takes one line in; true when it is the journal's.
  private mutating func read(_ line: JobLine, inJournal: Bool, isDefaults: Bool) -> Bool {
    do throws(InvalidValue) {
      switch try line.content() {
      case .comment(let text):
        if text.utf8.elementsEqual(Self.offeredLine.utf8) { request.isOffered = true }
        if text.begins(with: Self.listStart) { list = String(text).exact }
        if text.begins(with: JobLines.signedStart) {
          request.signedBy = String(text.dropFirstBytes(JobLines.signedStart.utf8.count))
        }
      case .journal(let key, let value):
        if isDefaults {
          try set(key.rawValue[...], value, line.number, isDefaults)
        } else {
          if let fields = Fields(parsing: value) { journal.apply(key, fields) }
          return true
        }
      case .url(let text):
        if isDefaults { throw InvalidValue("a URL is not allowed in `defaults`") }
        bareURLs += 1
        set(.url, WrittenValue(text: String(text), line: line.number))
      case .setting(let key, let value): try set(key, value, line.number, isDefaults)
      case .other: throw InvalidValue("neither a URL nor `key: value`")
      }
    } catch {
      // In the journal it is a line of a later version.
      if !inJournal { note(Defect(line: line.number, reason: error.reason)) }
    }
    return false
  }

  private mutating func set(_ name: Substring, _ value: Substring, _ number: Int, _ isDefaults: Bool)
    throws(InvalidValue)
  {
    guard let (key, host) = JobKey.find(name) else {
      let digests = DigestAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
      let isOtherSum =
        ["checksum", "sum", "hash", "digest"].contains { name.lowercasedASCII == $0 }
        || DigestAlgorithm(title: name) != nil
      let hint = isOtherSum ? ": the keys for digests are \(digests)" : ""
      throw InvalidValue("unknown key `\(escaped(PayloadName.cut(name[...], to: 40)))`\(hint)")
    }
    if isDefaults, key.scope == .job {
      throw InvalidValue("`\(key.name)` belongs to one job and is not allowed in `defaults`")
    }
    if !isDefaults, key.scope == .defaults {
      throw InvalidValue("`\(key.name)` is the worker's own and is allowed in the spool's `defaults` only")
    }
    set(key, WrittenValue(text: String(value), host: host, line: number))
  }

  /// A defect of a value counts behind the journal as well: a person may have added the line to a failed job.
  private mutating func set(_ key: JobKey, _ value: WrittenValue) {
    do throws(Defect) { try key.set(value, in: &request) } catch { note(error) }
  }

  /// The same job without what later lines supersede. ``journal`` reads the same from it, but perhaps an earlier
  /// ``Journal/Data/earlierMark``.
  package static func compacted(_ bytes: [UInt8]) -> [UInt8] {
    // Nothing behind a zero is read.
    bytes.contains(0) ? bytes : withoutIdleAttempts(withoutOldCheckpoints(bytes))
  }

  /// Without the checkpoints but the last, the first, with which the journal may begin, and those before which data was
  /// cut off or is replaced.
  private static func withoutOldCheckpoints(_ bytes: [UInt8]) -> [UInt8] {
    let checkpoints = bytes.withUnsafeBytes { bytes in
      JobLines(bytes).compactMap { line in line.checkpoint.map { (range: line.range, offset: $0) } }
    }
    let old = zip(checkpoints.dropFirst(), checkpoints).dropLast().filter { $0.offset >= $1.offset }
    return without(old.map(\.0.range), bytes)
  }

  /// Without the attempts that failed for what no server has done, but the first and the last: as long as there is no
  /// network, there is one a minute.
  private static func withoutIdleAttempts(_ bytes: [UInt8]) -> [UInt8] {
    let idle = bytes.withUnsafeBytes { bytes in
      var (idle, start): ([Range<Int>], Int?) = ([], nil)
      for line in JobLines(bytes) where line.isComplete {
        let key = line.journal?.key
        if key == .failed, line.journal?.text("burned") == "no", let start {
          idle.append(start..<line.range.upperBound)
        }
        start = key == .started ? start ?? line.range.lowerBound : nil
      }
      return idle.dropFirst().dropLast()
    }
    if idle.isEmpty { return bytes }
    let kept = without(idle, bytes)
    let isSame = bytes.withUnsafeBytes { JobText($0) }.journal == kept.withUnsafeBytes { JobText($0) }.journal
    return isSame ? kept : bytes
  }

  private static func without(_ ranges: some Sequence<Range<Int>>, _ bytes: [UInt8]) -> [UInt8] {
    var (kept, position): ([UInt8], Int) = ([], 0)
    for range in ranges {
      kept += bytes[position..<range.lowerBound]
      position = range.upperBound
    }
    return kept + bytes[position...]
  }
}

extension JobLine {
  /// The offset of a checkpoint, 0 for one that says none; nil for what does not count as one and supersedes nothing.
  fileprivate var checkpoint: UInt64? {
    guard isComplete, journal?.key == .checkpoint, case .success(.journal(_, let value)) = Result(catching: content)
    else { return nil }
    return Fields(parsing: value).map { JournalEntry(key: .checkpoint, fields: $0).mark?.offset ?? 0 }
  }
}

extension JobText {
  /// The job's priority: `high` after it came through `urgent/`, else what it asks for.
  package func priority(inheriting defaults: JobRequest) -> Priority {
    journal.isUrgent ? .high : request.priority ?? defaults.priority ?? .normal
  }

  /// Whether a text that this program has written asks for high priority. To read all of it would take much of the time
  /// in which a million jobs are dropped.
  static func saysHighPriority(_ bytes: [UInt8]) -> Bool {
    let wanted = "priority: \(Priority.high.rawValue)".utf8
    return bytes.withUnsafeBytes { JobLines($0).contains { $0.isComplete && $0.bytes.elementsEqual(wanted) } }
  }

  /// Whether the text itself shows that the job has high priority, wherever it is.
  var isMarkedUrgent: Bool { priority(inheriting: JobRequest()) == .high }

  /// A job's text with another priority: the only `priority:` line is this one, and that the job came through `urgent/`
  /// does not count any more.
  static func settingPriority(_ priority: Priority, in bytes: [UInt8]) -> [UInt8] {
    let kept = JobLines.kept(of: bytes) { line in
      !line.isComplete || !line.sets(["priority"]) && line.journal?.key != .urgent
    }
    let position = kept.withUnsafeBytes { kept in
      JobLines(kept).first { !$0.isComplete || $0.journal != nil }?.range.lowerBound ?? kept.count
    }
    return Array(kept[..<position]) + Array("priority: \(priority.rawValue)\n".utf8) + kept[position...]
  }

  /// A standing order's text without those of its checks that failed.
  package static func withoutAttempts(_ bytes: [UInt8]) -> [UInt8] {
    JobLines.happened(of: bytes) { [nil, .checked, .seen].contains($0.journal?.key) }
  }

  /// A standing order's text with its journal begun anew: what it asks for, its last check, and the keys of the entries
  /// that need no job.
  package static func order(_ bytes: [UInt8], checked time: Timestamp, _ check: Journal.Check, seen: [String])
    -> [UInt8]
  {
    var lines = JournalLine.checked(time, check).text
    for start in stride(from: 0, to: seen.count, by: Journal.Checks.mostInLine) {
      lines += JournalLine.seen(seen[start..<min(start + Journal.Checks.mostInLine, seen.count)]).text
    }
    // A person may have added lines of the request at the end.
    return JobLines.happened(of: bytes) { $0.journal == nil } + Array(lines.utf8)
  }
}

extension JobRequest {
  private static let mirrorsLength = JobText.maximumRequest / 2

  /// The first of these URLs, as many as one job has room for, but at least one.
  package static func mirrors(_ urls: [String]) -> [String] {
    var room = mirrorsLength
    let count = urls.prefix { url in
      // With `url: ` and the newline.
      room -= url.utf8.count + 6
      return room >= 0
    }.count
    return Array(urls.prefix(max(1, count)))
  }
}

/// The line by which a dropper says that it has written all of a job.
///
/// Where nobody can see for sure who still writes a file (``FileSystemKind/leases``), a job that ends in it need not
/// settle, and needs no copy. To readers it is a comment.
extension JobText {
  static let completeLine = Array("# complete\n".utf8)

  /// A job's text as this program drops it: with the line where that makes a difference.
  static func finished(_ text: [UInt8], on kind: FileSystemKind) -> [UInt8] {
    kind.leases == .both || text.last != 0x0A || saysComplete(text) ? text : text + completeLine
  }

  package static func saysComplete(_ text: [UInt8]) -> Bool {
    let end = [0x0A] + completeLine
    return text.suffix(end.count).elementsEqual(end)
  }
}
