/// What two mounts of one spool show each other. Found out by ``Spool/tryPeer(_:)``.
package struct PeerTraits: Sendable, Equatable {
  /// Whether the directories of the two have different times, so they are two spools.
  package var areTwoSpools = false
  /// Milliseconds until a file that was made on one is seen on the other; nil if it was not seen in time.
  package var appearsAfter: Int64?
  /// The same for the removal of a file that the other has seen.
  package var goneAfter: Int64?
  /// Whether a lock of one excludes the other.
  package var locksAreSeen = true
  /// Whether a lease is refused on the other while one has the file open for writing.
  package var writersAreSeen = true
  /// How many files both tried to rename at the same time.
  package var races = 0
  /// In how many of these cases both were told that they had succeeded.
  package var doubles = 0
  /// In how many of them neither has the file.
  package var losses = 0
  /// Seconds by which the time of a file that the peer made is ahead of one that was made here.
  package var clockOffset: Int64 = 0

  /// Until it is tried, nothing is lost or done twice, and no file has been seen.
  package init() {}

  /// Milliseconds that a name may take to be seen.
  static let patience: Int64 = 30_000

  /// Why the two cannot share a spool; empty if they can.
  package var obstacles: [String] {
    if areTwoSpools { return ["these are two spools: name the same one as each host has it mounted"] }
    if appearsAfter == nil {
      return [
        "what is made on one was not seen on the other within \(Self.patience / 1000) s: mount the same directory, or"
          + " mount it without caching names"
      ]
    }
    if doubles + losses > 0 {
      return [
        "of \(races) files that both renamed at the same time, \(doubles) went to both and \(losses) to neither, so one"
          + " job could run twice or be lost: use another file system"
      ]
    }
    return []
  }

  /// What workers do differently, in plain words; empty if nothing.
  package var limits: [String] {
    var found: [String] = []
    if !locksAreSeen {
      found.append(
        "locks are not seen by the other: workers of other hosts are told alive by their heartbeats alone, so give each"
          + " host its own name")
    }
    if !writersAreSeen {
      found.append("the other does not see whether a program still writes a file")
    }
    if let appearsAfter, appearsAfter >= 2000 {
      found.append("a new file is seen after \(appearsAfter) ms: mount it with a shorter cache of names")
    }
    if goneAfter.map({ $0 >= 2000 }) ?? true {
      let time = goneAfter.map { "only after \($0) ms" } ?? "not within \(Self.patience / 1000) s"
      found.append("that a file is gone is seen \(time): mount it with a shorter cache of names")
    }
    if clockOffset != 0 {
      found.append(
        "files made by the other get times that differ by \(clockOffset.magnitude) s: set all hosts' clocks by NTP")
    }
    return found
  }

  /// What was found, one line each.
  package var lines: [(name: String, value: String)] {
    if areTwoSpools { return [] }
    return [
      ("a new file", appearsAfter.map { "is seen after \($0) ms" } ?? "is not seen"),
      ("a removed file", goneAfter.map { "is gone after \($0) ms" } ?? "is still seen"),
      ("locks", locksAreSeen ? "exclude the other" : "do not exclude the other"),
      ("writers", writersAreSeen ? "are seen by the other" : "are not seen by the other"),
      ("renames", "\(races) files renamed by both: \(doubles) twice, \(losses) lost"),
      ("clock", clockOffset == 0 ? "the same" : "\(clockOffset) s apart"),
    ]
  }
}
