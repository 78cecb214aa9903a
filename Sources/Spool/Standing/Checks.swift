extension Journal {
  /// What a check of a standing order found.
  package struct Check: Sendable, Equatable {
    /// How many entries the list has.
    package let entries: Int
    /// How many of them became jobs.
    package let new: Int
    /// nil if the list is the same as at the last check.
    package let version: ListVersion?
    /// What could not be used.
    package let problems: ListProblems

    /// - Parameter version: nil if the list is the same as at the last check.
    package init(entries: Int, new: Int, version: ListVersion?, problems: ListProblems = ListProblems()) {
      self.entries = entries
      self.new = new
      self.version = version
      self.problems = problems
    }
  }

  /// The version of a list, by which a server can say that it is unchanged (RFC 9110 section 13.1).
  package struct ListVersion: Sendable, Equatable {
    /// A CRC-32 of the URL that was asked, which may contain secrets, and of what its bytes are taken for. A version
    /// counts for these only.
    package let list: Checksum
    /// As sent, also a weak one.
    package let etag: String?
    /// Last-Modified as sent.
    package let modified: String?

    /// - Parameter url: as it was asked; only a CRC-32 of it is kept.
    package init(url: String, format: EntryFormat?, etag: String?, modified: String?) {
      list = Self.checksum(url, format)
      self.etag = etag
      self.modified = modified
    }

    fileprivate init?(_ fields: Fields) {
      guard let list = fields["list"].flatMap({ Checksum($0) }) else { return nil }
      self.list = list
      etag = fields["etag"]
      modified = fields["modified"]
    }

    /// The conditions of a request for a newer version (RFC 9110 section 13.1). With an ETag the date does not count.
    package var conditions: [String] {
      if let etag { return ["If-None-Match: \(etag)"] }
      return modified.map { ["If-Modified-Since: \($0)"] } ?? []
    }

    /// Whether the version is of the list at this URL, read as this format.
    package func isOf(url: String, format: EntryFormat?) -> Bool { list == Self.checksum(url, format) }

    private static func checksum(_ url: String, _ format: EntryFormat?) -> Checksum {
      Checksum(of: "\(url)\n\(format?.rawValue ?? "")")
    }
  }

  /// The checks of a standing order.
  package struct Checks: Sendable, Equatable {
    /// Of the last check that found the list sound.
    package private(set) var lastTime: Timestamp?
    /// How many entries the list had then.
    package private(set) var entries = 0
    /// What the server said of the list then; nil if it has no validator.
    package private(set) var version: ListVersion?
    /// What of the list could not be used then.
    package private(set) var problems = ListProblems()
    /// The entries that are known: the key (``FeedEntry/key``) of one that needs no job; and for one whose job was not
    /// done yet, its key, a dot and its link (``FeedEntry/link(_:)``). Those of the list come first, in its order, then
    /// those that left it, the last one first.
    package private(set) var seen: [String] = []

    /// Keys in one `seen:` line.
    package static let mostInLine = 64

    mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      case .checked:
        lastTime = entry.time ?? lastTime
        if entry.fields["unchanged"] == "yes" { return }
        entries = entry.number("entries").flatMap { Int(exactly: $0) } ?? 0
        version = ListVersion(entry.fields)
        problems = entry.fields.problems
      case .seen:
        seen += entry.fields.words.filter {
          $0.utf8.count == FeedEntry.keyLength || $0.utf8.count == 2 * FeedEntry.keyLength + 1
        }
      default: break
      }
    }
  }
}

extension JobText {
  /// A standing order's text with its journal begun anew: what it asks for, its last check, and the keys of the entries
  /// that need no job.
  /// - Parameter bytes: the order's text with its journal.
  package static func order(_ bytes: [UInt8], checked time: Timestamp, _ check: Journal.Check, seen: [String])
    -> [UInt8]
  {
    var lines = JournalLine.checked(time, check).text
    for start in stride(from: 0, to: seen.count, by: Journal.Checks.mostInLine) {
      lines += JournalLine.seen(seen[start..<min(start + Journal.Checks.mostInLine, seen.count)]).text
    }
    // A person may have added lines of the request at the end.
    return JobLines.kept(of: bytes) { $0.isComplete && !$0.hasZero && $0.journal == nil } + Array(lines.utf8)
  }
}
