internal import Spool
internal import Transfer

func checkRange(_ bytes: [UInt8]) throws(Violation) {
  guard let range = ContentRange(String(decoding: bytes, as: UTF8.self)) else { return }
  var text = "bytes "
  if let first = range.first, let last = range.last {
    try require(first <= last, "a range that ends before it begins")
    try require(range.total.map { last < $0 } ?? true, "a range beyond the end")
    text += "\(first)-\(last)/"
  } else {
    try require(range.first == nil && range.last == nil && range.total != nil, "half a range")
    text += "*/"
  }
  text += range.total.map { "\($0)" } ?? "*"
  try require(ContentRange(text) == range, "a range is read back as another")
}

func checkMoment(_ bytes: [UInt8]) throws(Violation) {
  let text = String(decoding: bytes, as: UTF8.self)
  if let moment = Timestamp(text) {
    try require(same(moment.description, text.utf8.count == 10 ? text + "T00:00:00Z" : text), "a time is changed")
  }
  for now: Int64 in [0, 1_795_248_000, 253_402_300_799] {
    if let seconds = HTTPDate.parse(text, now: now) {
      // 0001-01-01 to the leap second after 9999; the year of an rfc850-date may be the one of `now` plus fifty.
      try require((-62_135_596_800...255_000_000_000).contains(seconds), "a date beyond the calendar")
      let fixed = imfFixdate(seconds)
      try require(fixed.map { HTTPDate.parse($0, now: now) == seconds } ?? true, "a date is read back as another")
    }
    if let wait = RetryAfter.seconds(text, now: now) {
      try require((0...Int(Int32.max)).contains(wait), "a wait that is none")
      if let number = UInt64(text) { try require(wait == min(number, UInt64(Int32.max)), "another wait than said") }
    }
  }
}

/// Nil for years of more than four digits.
private func imfFixdate(_ seconds: Int64) -> String? {
  let parts = Timestamp(seconds: seconds).description.split { "-T:Z".contains($0) }
  let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  guard parts.count == 6, parts[0].utf8.count == 4, let month = Int(parts[1]) else { return nil }
  return "Mon, \(parts[2]) \(months[month - 1]) \(parts[0]) \(parts[3]):\(parts[4]):\(parts[5]) GMT"
}

func checkHead(_ bytes: [UInt8]) throws(Violation) {
  var reader = HeadReader()
  var head: ResponseHead?
  var isEnded = false
  for line in lines(bytes) {
    let event = line.withUnsafeBytes { reader.take($0) }
    switch event {
    case .nothing: break
    case .head(let found):
      try require(head == nil && !isEnded, "two heads of one response")
      head = found
    case .malformed(let reason):
      try require(!reason.isEmpty && !hasControls(reason), "a reason that steers a terminal")
      isEnded = true
    }
    if isEnded { break }
  }
  guard let head else { return }
  try require((200...999).contains(head.status), "status \(head.status) is no final one")
  for field in head.fields {
    try require(!field.name.utf8.contains { (0x41...0x5A).contains($0) || $0 == 0x3A || $0 == 0x0A }, "a name as sent")
    let ends = [field.value.utf8.first, field.value.utf8.last].compactMap { $0 }
    try require(!ends.contains(0x20) && !ends.contains(0x09), "a value with its blanks")
    try require(!field.value.utf8.contains(0x0A), "a value of two lines")
    try require(head.values(field.name).contains { same($0, field.value) }, "a field that cannot be found")
  }
  switch head.framing {
  case .none: try require([204, 304].contains(head.status), "a body is left unread")
  case .length(let length):
    try require(length <= UInt64(Int64.max), "a length that is no file offset")
    try require(!hasCoding(head), "a length beside a coding")
    try require(
      head.values("content-length").allSatisfy {
        $0.split(separator: ",").allSatisfy { UInt64($0.trimmingBlanks) == length }
      }, "one of several lengths")
  case .chunked: try require(hasCoding(head), "chunks that were not announced")
  case .close:
    try require(head.first("content-length") == nil && !hasCoding(head), "an end left aside")
  case .invalid(let reason): try require(!hasControls(reason), "a reason that steers a terminal")
  }
}

/// An empty list is no coding, and neither is `identity`.
private func hasCoding(_ head: ResponseHead) -> Bool {
  head.values("transfer-encoding").flatMap { $0.split(separator: ",").map { $0.trimmingBlanks.lowercased() } }
    .contains { !["", "identity"].contains($0) }
}

/// As libcurl delivers them: each with its line end, the last one perhaps without.
func lines(_ bytes: [UInt8]) -> [[UInt8]] {
  var lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) + [0x0A] }
  lines[lines.count - 1].removeLast()
  return lines.last?.isEmpty == true ? lines.dropLast() : lines
}

extension Substring {
  fileprivate var trimmingBlanks: Substring {
    var text = drop { $0 == " " || $0 == "\t" }
    while text.last == " " || text.last == "\t" { text.removeLast() }
    return text
  }
}
