/// A job file's text, read: what is asked, what happened, what is wrong with it.
package struct JobText: Sendable {
  /// Bytes of the request, before the first journal line.
  package static let maximumRequest = 64 * 1024

  package private(set) var request = JobRequest()
  package private(set) var journal = Journal()
  /// The first thing that keeps the job from being run; nil for a valid one.
  package private(set) var defect: Defect?
  /// Bytes up to and with the last newline. What follows did not happen, or is still being written.
  package private(set) var completeLength = 0
  package private(set) var hasTornTail = false
  /// The tail is the beginning of a journal line, or zeros where a power cut kept the length and lost the data.
  package var tornTailIsJournal: Bool { hasTornTail && !journal.isEmpty || tailBeginsJournal }
  /// It begins as the worker's lines do.
  private var tailBeginsJournal = false

  /// The request goes on beyond ``maximumRequest``; the rest was not read.
  package private(set) var isTooLong = false

  private var bareURLs = 0

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
      // A power cut can leave zeros where a journal line should be: it and all behind it did not happen.
      if inJournal, line.contains(0) { break }
      inJournal = inJournal || isJournal
      position += length + 1
      if !inJournal, position > Self.maximumRequest {
        isTooLong = true
        note(Defect(line: number, reason: "a job has at most 64 KiB"))
        break
      }
    }
    completeLength = position
    hasTornTail = position < bytes.count
    tailBeginsJournal = hasTornTail && Self.beginsJournal(bytes[position...])
    if !isDefaults {
      if request.urls.isEmpty { note(Defect(line: nil, reason: "no URL: a job is at least one line with a URL")) }
      if bareURLs > 1 {
        note(
          Defect(
            line: nil,
            reason: "several bare URLs: one file a job, or `url:` before each if they are mirrors of one file"))
      }
    }
  }

  /// Whether the torn tail is a worker's line, which did not happen. What is past `new/` was whole when it was claimed; a job that came back with its
  /// journal may have got a line from a person, which is still being written, or was cut short.
  func isTornByWorker(in origin: Directory) -> Bool {
    origin == .new ? tailBeginsJournal && !journal.isEmpty : tornTailIsJournal
  }

  private static func beginsJournal(_ tail: Slice<UnsafeRawBufferPointer>) -> Bool {
    let written = tail.prefix { $0 != 0 }
    return JournalKey.allCases.contains { key in
      let head = Array("\(key.rawValue): ".utf8)
      return zip(written, head).allSatisfy { $0 == $1 }
    }
  }

  private mutating func note(_ defect: Defect) { self.defect = self.defect ?? defect }

  /// Takes one line in; true when it is the journal's.
  private mutating func read(_ line: UnsafeRawBufferPointer, number: Int, inJournal: Bool, isDefaults: Bool) -> Bool {
    var bytes = Array(line)
    if bytes.last == 0x0D { bytes.removeLast() }
    if number == 1, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
    func refuse(_ reason: String) { if !inJournal { note(Defect(line: number, reason: reason)) } }
    if bytes.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
      refuse("control bytes: a job is plain text")
      return false
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      refuse("not UTF-8")
      return false
    }
    let content = trimmed(text[...])
    if content.isEmpty || content.utf8.first == UInt8(ascii: "#") { return false }
    let head = content.prefix { $0 != ":" }
    if head.endIndex != content.endIndex, content[head.endIndex...].hasPrefix("://") {
      if isDefaults {
        refuse("a URL has no place in `defaults`")
      } else {
        bareURLs += 1
        set(.url, String(content), number)
      }
      return false
    }
    guard head.endIndex != content.endIndex else {
      refuse("neither a URL nor `key: value`")
      return false
    }
    let value = trimmed(content[head.endIndex...].dropFirst())
    if let key = JournalKey(rawValue: String(head)), !isDefaults {
      if let fields = Fields(parsing: value) { journal.apply(key, fields) }
      return true
    }
    // The one key that may name a host, `header@HOST`.
    let names = head.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    let host = names.count == 2 && names[0] == RequestKey.header.rawValue ? String(names[1]) : nil
    guard let key = RequestKey(rawValue: String(host == nil ? head : names[0])) else {
      let isOtherSum = ["sha1", "sha256", "sha512", "md5", "checksum"].contains(head.lowercased())
      let hint = isOtherSum ? ": crc32 is built in, a verify hook checks others" : ""
      refuse("unknown key `\(escaped(head.prefix(40)))`\(hint)")
      return false
    }
    if isDefaults, key.isPerJob {
      refuse("`\(key.rawValue)` belongs to one job and has no place in `defaults`")
      return false
    }
    set(key, of: host, String(value), number)
    return false
  }

  private mutating func set(_ key: RequestKey, of host: String? = nil, _ value: String, _ number: Int) {
    do throws(Defect) { try request.set(key, of: host, value, line: number) } catch { note(error) }
  }
}

extension JobText {
  /// The same job without the checkpoints that only the past needs: all but the first, which may be where the journal begins, and the last.
  /// Read anew, ``journal`` is the same.
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

  /// Whether a journal line with these fields counts: one that does not is for people to look at, and supersedes nothing.
  private static func isReadable(_ fields: ArraySlice<UInt8>) -> Bool {
    guard !fields.contains(where: { $0 < 0x20 || $0 == 0x7F }), let text = String(validating: fields, as: UTF8.self)
    else { return false }
    return Fields(parsing: text[...]) != nil
  }
}

private func trimmed(_ text: Substring) -> Substring {
  var text = text.drop { $0 == " " || $0 == "\t" }
  while let last = text.last, last == " " || last == "\t" { text.removeLast() }
  return text
}
