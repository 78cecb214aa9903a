internal import Spool

/// A line of an archive, and a receipt that becomes one.
func checkArchive(_ bytes: [UInt8]) throws(Violation) {
  let line = bytes.split(separator: 0x0A, maxSplits: 1, omittingEmptySubsequences: false).first.map(Array.init) ?? []
  switch read(line) {
  case .success(let receipt?):
    try require(receipt.name.isEntry && !receipt.name.bytes.contains(0), "a name that is none")
  case .success(nil): try require(line.first == UInt8(ascii: "#"), "a line that is left out")
  case .failure(let defect): try require(!hasControls(defect.reason), "a defect that steers a terminal")
  }
  try checkWritten(bytes)
}

private func read(_ line: [UInt8]) -> Result<ArchivedReceipt?, Defect> {
  line.withUnsafeBytes { line in Result { () throws(Defect) in try ArchivedReceipt.read(line) } }
}

/// What is written is one line, which cannot control a terminal, and is read back as it was.
private func checkWritten(_ bytes: [UInt8]) throws(Violation) {
  let name = FileName([0x61, 0x09, 0xFF])
  var line: [UInt8] = []
  let month = bytes.withUnsafeBytes { ArchivedReceipt.append(name, $0, modified: 1, to: &line) }
  guard month != nil else { return try require(line.isEmpty, "a line of no receipt") }
  try require(line.popLast() == 0x0A, "a line that does not end")
  let text = String(decoding: line, as: UTF8.self)
  let isTame = Array(text.utf8) == line && !hasControls(String(text.filter { $0 != "\t" }))
  try require(isTame, "a line that steers a terminal")
  guard case .success(let receipt?) = read(line) else { throw Violation(description: "a line that is not read") }
  try require(receipt.bytes == bytes && receipt.name == name && receipt.modified.seconds == 1, "read back as another")
}
