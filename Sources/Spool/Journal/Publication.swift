extension Journal {
  /// A payload that was verified.
  package struct Verified: Sendable, Equatable {
    /// Bytes of the payload.
    package let size: UInt64
    /// The digests that were computed of it.
    package let digests: Digests
    /// The inode of the data.
    package let part: UInt64
    /// Which property of the payload is not proven: `length`, if the body ended with the connection.
    package let unproven: String?

    /// - Parameter whole: the end of the payload.
    package init(_ whole: Mark, part: UInt64, unproven: String? = nil) {
      (size, digests) = (whole.offset, whole.digests)
      self.part = part
      self.unproven = unproven
    }

    fileprivate init?(_ entry: JournalEntry) {
      guard let size = entry.number("size"), let part = entry.number("part") else { return nil }
      (self.size, self.part) = (size, part)
      digests = Digests(entry.fields)
      if digests[.crc32] == nil { return nil }
      unproven = entry.fields["unproven"]
    }

    /// What the payload must be to be still the same.
    package var expectation: Expectation { Expectation(size: size, digests: digests) }
  }

  /// The fields of a `done:` line.
  package struct Receipt: Sendable, Equatable {
    /// The output's path below its root.
    package let output: String
    /// The output root, where it was not the spool's `files`.
    package let directory: String?
    /// As in ``Verified/unproven``.
    package let unproven: String?
  }

  /// The fields of a `published:` line.
  package struct Undelivered: Sendable, Equatable {
    /// As in ``Receipt``.
    package let output: String
    /// As in ``Receipt``.
    package let directory: String?
  }

  /// How far the payload's publication went.
  package struct Publication: Sendable, Equatable {
    /// What was verified since the job last began.
    package fileprivate(set) var verified: Verified?
    /// The same, also after the job came through `new/` again: its payload may have its final name.
    package fileprivate(set) var own: Verified?
    /// The receipt since the job last began.
    package fileprivate(set) var receipt: Receipt?
    /// When the last receipt was written.
    package fileprivate(set) var receiptTime: Timestamp?
    /// What has its final name, as far as a receipt or a `published:` line shows, until other data begins to come: a
    /// job that came through `new/` again may stop before that.
    package fileprivate(set) var published: Verified?
    /// The payload that the hook `deliver` has not accepted yet. It has its final name.
    package fileprivate(set) var undelivered: Undelivered?
    /// Whether there is such a payload.
    package var awaitsDelivery: Bool { undelivered != nil }

    mutating func apply(_ entry: JournalEntry) {
      switch entry.key {
      // The job may have been edited: what was verified for its old text proves nothing.
      case .requeued: (verified, receipt) = (nil, nil)
      case .started: (verified, own, receipt, undelivered) = (nil, nil, nil, nil)
      case .response: published = nil
      case .failed:
        if entry.failureCode?.isMismatch == true { (verified, own, undelivered) = (nil, nil, nil) }
      case .verified:
        verified = Verified(entry) ?? verified
        own = verified
      case .published:
        published = verified ?? published
        undelivered = Undelivered(output: entry.fields["output"] ?? "", directory: entry.fields["directory"])
      case .done:
        undelivered = nil
        guard let output = entry.fields["output"] else { return }
        receipt = Receipt(output: output, directory: entry.fields["directory"], unproven: entry.fields["unproven"])
        receiptTime = entry.time
        published = verified
      case .urgent, .relinked, .checkpoint, .cleared, .interrupted, .checked, .seen: break
      }
    }
  }
}
