package import Spool

/// Reads the journals and receipts of a spool, and its archives. It changes nothing.
package struct ReportReader {
  private let spool: Spool

  /// How many waiting jobs are read; of others only their age counts.
  private static let waitingRead = 10_000

  package init(_ spool: Spool) { self.spool = spool }

  /// - Parameter since: what happened before is left out; nil: nothing.
  /// - Throws: ``SpoolError``, EACCES if this user may not read one of the directories.
  package func read(since: Timestamp?, now: Timestamp) throws(SpoolError) -> ReportFacts {
    var facts = ReportFacts(since: since, now: now)
    // A job that moves while the directories are read is seen in the next one, by the same inode.
    var seen: Set<UInt64> = []
    var receipts = SeenReceipts()
    // Of what is no job, by the name of its record.
    let failed = try spool.list(.failed)
    let records = Set(failed.filter(\.hasRecordSuffix))
    let subjects = Dictionary(failed.filter { records.contains($0.record) }.map { ($0.record, $0) }) { one, _ in one }
    for directory in [Directory.hold, .new, .urgent, .cur, .partial, .cur, .failed, .done] {
      // A receipt is the last that is written to a job.
      let from = directory == .done ? since?.seconds ?? .min : .min
      let most = directory.takesDrops ? Self.waitingRead : .max
      try spool.eachJob(in: directory, modifiedSince: from, reading: most) { (file) throws(SpoolError) in
        if directory != .done, !seen.insert(file.status.inode).inserted { return }
        if directory == .done, seen.contains(file.status.inode) { return }
        if directory == .done { receipts.insert(file.name, file.bytes) }
        let name = directory == .cur ? ClaimName(file.name)?.job.fileName ?? file.name : file.name
        var record = JobRecord(
          name, in: directory, bytes: file.bytes, changed: Timestamp(seconds: file.lastChange(at: now)))
        if directory == .failed, let subject = subjects[name] { (record.name, record.isRecord) = (subject, true) }
        facts.add(record)
      }
    }
    let archive = try ArchiveStream(spool, since: since?.seconds ?? .min)
    while let receipt = try archive.next() {
      if receipts.contains(receipt) { continue }
      let record = receipt.bytes.withUnsafeBytes {
        JobRecord(receipt.name, in: .done, bytes: $0, changed: min(receipt.modified, now))
      }
      facts.add(record)
    }
    return facts
  }
}

/// What a job's journal says, as the report needs it. Pure.
package struct JobRecord: Sendable, Equatable {
  /// One try, from its `started:` to the line that ends it.
  package struct Attempt: Sendable, Equatable {
    package enum End: Sendable, Equatable {
      case done, interrupted
      case failed(code: String)
      /// It runs, or its worker has died.
      case open
    }

    /// As the journal counts it; 0 if that is not known.
    package var number: UInt64 = 0
    package var begun: Timestamp
    package var ended: Timestamp
    package var end = End.open
    /// Of the last URL that it tried, with the port if there is one; empty if that is not known.
    package var host: String
    /// Bytes that it received over the network.
    package var bytes: UInt64 = 0
  }

  package var name: FileName
  /// Whether it is the record of an entry that is no job.
  package var isRecord = false
  /// The directory that it is in.
  package var directory: Directory
  package var attempts: [Attempt] = []
  /// Of the payload or of what the server has, in bytes; nil if it is not known.
  package var size: UInt64?
  /// The path of the payload below its root; nil if the job is not done.
  package var output: String?
  /// Why the last attempt failed, for a person; nil if none has.
  package var reason: String?
  /// When the file was dropped, as far as its journal or its times tell.
  package var since: Timestamp

  /// A host's name has at most 253 characters (RFC 1035 section 2.3.4), and a port.
  private static let longestHost = 260

  /// - Parameter changed: when the file was last written or renamed.
  package init(_ name: FileName, in directory: Directory, bytes: UnsafeRawBufferPointer, changed: Timestamp) {
    self.name = name
    self.directory = directory
    since = changed
    var isFirst = true
    var recorded: UInt64 = 0
    JournalScan.lines(bytes) { line in
      if isFirst, let time = line.time { (since, isFirst) = (min(time, changed), false) }
      switch line.key {
      case .started: begin(line)
      case .response: size = line.number("size") ?? size
      case .verified: size = line.number("size") ?? size
      case .requeued: recorded = 0
      case .failed:
        let fetched = line.number("fetched") ?? 0
        recorded &+= fetched
        end(line, .failed(code: line.text("code") ?? "unknown"), fetched)
        reason = line.text("reason")
      case .interrupted:
        let fetched = line.number("fetched") ?? 0
        recorded &+= fetched
        end(line, .interrupted, fetched)
      case .done:
        output = line.text("output")
        let all = line.number("bytes-fetched") ?? 0
        end(line, .done, all > recorded ? all - recorded : 0)
        recorded = max(recorded, all)
      default: break
      }
    }
  }

  private mutating func begin(_ line: ScannedLine) {
    guard let time = line.time else { return }
    let host = line.text("url").map { String(URLText($0).host.prefix(Self.longestHost)) } ?? ""
    // An attempt has such a line for each mirror.
    let number = line.number("attempt") ?? 0
    if let last = attempts.indices.last, attempts[last].end == .open, attempts[last].number == number {
      attempts[last].host = host
    } else {
      attempts.append(Attempt(number: number, begun: time, ended: time, host: host))
    }
  }

  private mutating func end(_ line: ScannedLine, _ end: Attempt.End, _ bytes: UInt64) {
    guard let time = line.time else { return }
    // A receipt that was written again, or a failure before anything was tried.
    if attempts.last?.end != .open {
      if end == .done, attempts.last?.end == .done { return }
      attempts.append(Attempt(begun: time, ended: time, host: attempts.last?.host ?? ""))
    }
    let last = attempts.count - 1
    (attempts[last].ended, attempts[last].end, attempts[last].bytes) = (max(time, attempts[last].begun), end, bytes)
  }
}

extension JobRecord {
  /// Seconds from the beginning of the first attempt to the end of the last.
  var seconds: Int64 {
    guard let first = attempts.first, let last = attempts.last else { return 0 }
    return max(0, last.ended.seconds - first.begun.seconds)
  }

  /// The code of the last failure; nil if the last attempt has not failed.
  var code: String? { if case .failed(let code) = attempts.last?.end { code } else { nil } }

  /// The host of the last attempt; empty if there was none.
  var host: String { attempts.last?.host ?? "" }
}
