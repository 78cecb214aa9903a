package import Spool

/// What a job's journal says, as the report needs it. Pure.
package struct JobRecord: Sendable, Equatable {
  /// One try, from its `started:` to the line that ends it.
  package struct Attempt: Sendable, Equatable {
    /// How it ended.
    package enum End: Sendable, Equatable {
      case done, interrupted
      case failed(code: String)
      /// It runs, or its worker has died.
      case open
    }

    /// As the journal counts it; 0 if that is not known.
    package var number: UInt64 = 0
    /// When it began.
    package var begun: Timestamp
    /// The last line of it.
    package var ended: Timestamp
    /// How it ended.
    package var end = End.open
    /// Of the last URL that it tried, with the port if there is one; empty if that is not known.
    package var host: String
    /// Bytes that it received over the network.
    package var bytes: UInt64 = 0
  }

  /// The name of the job.
  package var name: FileName
  /// Whether it is the record of an entry that is no job.
  package var isRecord = false
  /// The directory that it is in.
  package var directory: Directory
  /// In their order.
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
