internal import Spool
internal import SpoolLists

/// A letter for the format, or another byte for one told by its looks, and the list.
func checkList(_ bytes: [UInt8]) throws(Violation) {
  let formats: [UInt8: ListFormat] = [
    UInt8(ascii: "n"): .native, UInt8(ascii: "a"): .aria2, UInt8(ascii: "s"): .sums, UInt8(ascii: "v"): .sfv,
    UInt8(ascii: "x"): .metalink, UInt8(ascii: "b"): .bagit,
  ]
  guard let first = bytes.first else { return }
  // In XML, a carriage return ends a line as well (XML 1.0, section 2.11).
  let lines = bytes.count { $0 == 0x0A || $0 == 0x0D } + 1
  for ignoresUnknown in [true, false] {
    let options = ListOptions(format: formats[first], base: "http://h/d", ignoresUnknown: ignoresUnknown)
    do {
      let list = try ListReader(contents: Array(bytes.dropFirst()), options)
      var last = 0
      while let job = try list.next() {
        try require(job.line >= last && job.line <= lines, "a job of line \(job.line) of \(lines)")
        last = job.line
        try checkListed(job)
      }
      for defect in list.problems.named { try checkDefect(defect, lines) }
    } catch let violation as Violation {
      throw violation
    } catch let defect as Defect {
      try checkDefect(defect, lines)
    } catch {
      throw Violation(description: "a list in memory cannot be read: \(error)")
    }
  }
}

private func checkDefect(_ defect: Defect, _ lines: Int) throws(Violation) {
  try require(!hasControls(defect.reason), "a defect that steers a terminal")
  try require(defect.line.map { (1...lines).contains($0) } ?? true, "a defect in line \(defect.line ?? 0)")
}

/// What a list asks for is a job, apart from its URLs, which are checked by whoever drops it.
private func checkListed(_ job: ListedJob) throws(Violation) {
  let request = job.request
  try require(!request.urls.isEmpty || request.resolve != nil, "a job without a URL")
  try require(request.urls.allSatisfy { !$0.text.isEmpty }, "an empty URL")
  // A directory gets the name of the URL.
  try require(request.outputText(named: "x").map { OutputPath($0) != nil } ?? false, "an output that is none")
  let text = request.text
  let read = Array(text.utf8).withUnsafeBytes { JobText($0) }
  if text.utf8.count > JobText.maximumRequest { return }
  try require(read.defect == nil && read.journal.isEmpty, "no job: \(read.defect?.reason ?? "a journal")")
  try require(read.request.text == text, "read back as another job")
}
