internal import Spool
internal import SpoolLists

/// A letter for the format, or another byte for one told by its looks, and the list that a standing order watches; `e`
/// and what spoolrun-entries prints.
func checkFeed(_ bytes: [UInt8]) throws(Violation) {
  let formats: [UInt8: EntryFormat] = [
    UInt8(ascii: "r"): .rss, UInt8(ascii: "a"): .atom, UInt8(ascii: "d"): .docset, UInt8(ascii: "l"): .list,
    UInt8(ascii: "s"): .sums, UInt8(ascii: "m"): .metalink,
  ]
  guard let first = bytes.first else { return }
  let contents = Array(bytes.dropFirst())
  if first == UInt8(ascii: "e") { return try checkPrinted(contents) }
  do {
    for entry in try EntryList(contents: contents).entries(formats[first]).entries {
      // What cannot be printed is left out.
      guard let text = entry.text else { continue }
      if text.utf8.count > JobText.maximumRequest { continue }
      // The bytes that no job may have. What is shown of an entry is escaped.
      let isPlain = text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x0A }
      try require(isPlain, "an entry with control characters")
      try require(Array(text.utf8).last == 0x0A && text.hasSuffix("\n\n"), "an entry without its blank line")
      try require(try readBack(text) == [entry], "read back as another entry")
      try require(entry.key.utf8.count == FeedEntry.keyLength, "a key of another length")
    }
  } catch let violation as Violation {
    throw violation
  } catch let defect as Defect {
    try require(!hasControls(defect.reason), "a defect that steers a terminal")
  } catch {
    throw Violation(description: "a list in memory cannot be read: \(error)")
  }
}

/// What a program that was taken over might print.
private func checkPrinted(_ bytes: [UInt8]) throws(Violation) {
  let entries: [FeedEntry]
  do throws(Defect) { entries = try ReadList(bytes).entries } catch {
    return try require(!hasControls(error.reason), "a defect that steers a terminal")
  }
  for entry in entries {
    try require(!entry.urls.isEmpty, "an entry without a URL")
    try require(entry.name.map { OutputPath.defect(of: $0) == nil || $0.hasSuffix("/") } ?? true, "a name that is none")
  }
}

private func readBack(_ text: String) throws(Violation) -> [FeedEntry] {
  do throws(Defect) { return try ReadList(Array(text.utf8)).entries } catch {
    throw Violation(description: "not read back: \(error)")
  }
}
