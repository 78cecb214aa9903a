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

  /// What the job asks for.
  package private(set) var request = JobRequest()
  /// What happened to it.
  package private(set) var journal = Journal()
  /// The first defect; nil for a valid job.
  package private(set) var defect: Defect?
  /// Bytes up to and with the last newline. A line without one did not happen, or is still being written.
  package private(set) var completeLength = 0
  /// Whether the last line has no newline.
  package private(set) var hasTornTail = false
  /// Whether the tail is the beginning of a journal line, or zeros that a power cut left in its place: the file got its
  /// length, but not its data.
  package var tornTailIsJournal: Bool { hasTornTail && !journal.isEmpty || tailBeginsJournal }
  private var tailBeginsJournal = false

  /// The request is longer than ``maximumRequest``; the rest was not read.
  package private(set) var isTooLong = false

  private var bareURLs = 0

  /// - Parameter isDefaults: whether this is the file `defaults`, which has no keys of one job and no journal.
  package init(_ bytes: UnsafeRawBufferPointer, defaults isDefaults: Bool = false) {
    var position = 0
    var number = 0
    var inJournal = false
    while position < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[position...])
      guard let length = rest.firstIndex(of: 0x0A) else { break }
      number += 1
      let line = UnsafeRawBufferPointer(rebasing: rest[..<length])
      let isJournal = read(line, number: number, inJournal: inJournal, isDefaults: isDefaults)
      // A power cut can leave zeros in place of a journal line. That line, and all behind it, did not happen.
      if inJournal, line.contains(0) { break }
      inJournal = inJournal || isJournal
      position += length + 1
      if !inJournal, position > Self.maximumRequest {
        isTooLong = true
        note(Defect(line: number, reason: "a job has at most 64 KiB"))
        readLastLine(bytes)
        break
      }
    }
    completeLength = position
    hasTornTail = position < bytes.count
    tailBeginsJournal = hasTornTail && Self.beginsJournal(bytes[position...])
    if !isDefaults { noteURLs() }
  }

  /// Whether the torn tail is a line that a worker wrote, and so did not happen. A job from a directory for drops that
  /// has a journal may have a torn line from a person, who still writes it or was interrupted. Any other job was whole
  /// when it was claimed.
  func isTornByWorker(in origin: Directory) -> Bool {
    origin.isDroppedInto ? tailBeginsJournal && !journal.isEmpty : tornTailIsJournal
  }

  private static func beginsJournal(_ tail: Slice<UnsafeRawBufferPointer>) -> Bool {
    let written = tail.prefix { $0 != 0 }
    return JournalKey.allCases.contains { key in
      let head = Array("\(key.rawValue): ".utf8)
      return zip(written, head).allSatisfy { $0 == $1 }
    }
  }

  /// Why a job that is too long was given up is what its last line says.
  private mutating func readLastLine(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.last == 0x0A, let end = bytes.dropLast().lastIndex(of: 0x0A) else { return }
    let line = UnsafeRawBufferPointer(rebasing: bytes[(end + 1)..<(bytes.count - 1)])
    guard line.starts(with: "\(JournalKey.failed.rawValue): ".utf8) else { return }
    _ = read(line, number: 0, inJournal: true, isDefaults: false)
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
}

extension JobText {
  /// Takes one line in; true when it is the journal's.
  private mutating func read(_ line: UnsafeRawBufferPointer, number: Int, inJournal: Bool, isDefaults: Bool) -> Bool {
    do throws(InvalidValue) {
      let text = try Self.decoded(line, isFirst: number == 1)
      let content = trimmed(text[...])
      if content.isEmpty || content.utf8.first == UInt8(ascii: "#") {
        if content.utf8.elementsEqual(Self.offeredLine.utf8) { request.isOffered = true }
        return false
      }
      let head = content.prefix(before: ":")
      let rest = content[head.endIndex...]
      if !isDefaults, !rest.isEmpty, !Self.isOfURL(rest), let key = JournalKey(rawValue: String(head)) {
        if let fields = Fields(parsing: trimmed(rest.dropFirstBytes())) { journal.apply(key, fields) }
        return true
      }
      try readRequest(content, head, number, isDefaults)
    } catch {
      // In the journal it is a line of a later version.
      if !inJournal { note(Defect(line: number, reason: error.reason)) }
    }
    return false
  }

  /// Whether a URL continues like this behind its scheme.
  private static func isOfURL(_ rest: Substring) -> Bool { rest.begins(with: "://") }

  static func decoded(_ line: some Sequence<UInt8>, isFirst: Bool) throws(InvalidValue) -> String {
    var bytes = Array(line)
    if bytes.last == 0x0D { bytes.removeLast() }
    // A byte order mark.
    if isFirst, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
    if bytes.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
      throw InvalidValue("control bytes: a job is plain text")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw InvalidValue("not UTF-8") }
    return text
  }

  /// Takes in a URL, or a key and its value.
  /// - Parameter head: what `content` has before its first colon.
  private mutating func readRequest(
    _ content: Substring, _ head: Substring, _ number: Int, _ isDefaults: Bool
  ) throws(InvalidValue) {
    let rest = content[head.endIndex...]
    if Self.isOfURL(rest) {
      if isDefaults { throw InvalidValue("a URL is not allowed in `defaults`") }
      bareURLs += 1
      return set(.url, WrittenValue(text: String(content), line: number))
    }
    if rest.isEmpty { throw InvalidValue("neither a URL nor `key: value`") }
    guard let (key, host) = JobKey.find(head) else {
      let digests = DigestAlgorithm.allCases.map(\.rawValue).joined(separator: ", ")
      let isOtherSum =
        ["checksum", "sum", "hash", "digest"].contains { head.lowercasedASCII == $0 }
        || DigestAlgorithm(rawValue: head.lowercasedASCII.split(at: "-").joined()) != nil
      let hint = isOtherSum ? ": the keys for digests are \(digests)" : ""
      throw InvalidValue("unknown key `\(escaped(head.prefix(40)))`\(hint)")
    }
    if isDefaults, key.scope == .job {
      throw InvalidValue("`\(key.name)` belongs to one job and is not allowed in `defaults`")
    }
    if !isDefaults, key.scope == .defaults {
      throw InvalidValue("`\(key.name)` is the worker's own and is allowed in the spool's `defaults` only")
    }
    set(key, WrittenValue(text: String(trimmed(rest.dropFirstBytes())), host: host, line: number))
  }

  /// A defect of a value counts behind the journal as well: a person may have added the line to a failed job.
  private mutating func set(_ key: JobKey, _ value: WrittenValue) {
    do throws(Defect) { try key.set(value, in: &request) } catch { note(error) }
  }
}

extension JobText {
  /// The same job without superseded checkpoints: all but the last, and the first, with which the journal may begin.
  /// ``journal`` reads the same from it.
  package static func compacted(_ bytes: [UInt8]) -> [UInt8] {
    // Nothing behind a zero is read.
    if bytes.contains(0) { return bytes }
    let head = Array("\(JournalKey.checkpoint.rawValue): ".utf8)
    var checkpoints: [Range<Int>] = []
    var start = 0
    while let length = bytes[start...].firstIndex(of: 0x0A).map({ $0 + 1 - start }) {
      let line = start..<start + length
      if bytes[line].starts(with: head), isReadable(bytes[line].dropFirst(head.count).dropLast()) {
        checkpoints.append(line)
      }
      start += length
    }
    var kept: [UInt8] = []
    var position = 0
    for line in checkpoints.dropFirst().dropLast() {
      kept += bytes[position..<line.lowerBound]
      position = line.upperBound
    }
    return kept + bytes[position...]
  }

  /// Whether a journal line with these fields counts. One that does not supersedes nothing.
  private static func isReadable(_ fields: ArraySlice<UInt8>) -> Bool {
    guard !fields.contains(where: { $0 < 0x20 || $0 == 0x7F }), let text = String(validating: fields, as: UTF8.self)
    else { return false }
    return Fields(parsing: text[...]) != nil
  }
}
