internal import Spool

/// A list of pieces; what a journal line may say of such a list.
func checkPieces(_ bytes: [UInt8]) throws(Violation) {
  if let list = PieceList(bytes) {
    try require(list.text == bytes && list.count > 0, "a list is kept as another")
    try require(PieceKey(list.key.text) == list.key, "a key is written as another")
    try require(list.sizes.upperBound / list.key.length == UInt64(list.count), "pieces that no file has")
    let last = list.range(of: list.count - 1, in: list.sizes.upperBound)
    try require(UInt64(last.count) == list.key.length, "a last piece without bytes")
  }
  var maker = PieceList.Maker(length: 4096)
  bytes.withUnsafeBytes { maker.take($0) }
  guard let own = maker.list() else { return try require(bytes.isEmpty, "no list of a file") }
  try require(PieceList(own.text) == own, "a list that was made is none")
  let size = UInt64(bytes.count)
  let whole = Mark(offset: size, states: states(bytes, after: .zero([], pieces: own)))
  try require(Expectation(pieces: own.key).mismatch(whole) == nil, "a file is not what its list says")
  let line = JournalLine.checkpoint(whole).text
  try require(mark(line)?.narrowed(to: [], pieces: own)?.states.pieces?.wrong == [], "a state is read as another")
  // What somebody wrote in its place.
  let text = bytes.filter { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C && $0 != 0x2C }
  let start = "pieces/1:\(own.key.list.description.prefix(16)):"
  for start in ["", start] {
    let saved = start + String(decoding: text, as: UTF8.self)
    guard let mark = mark("checkpoint: \(size) crc32=00000000 states=\"\(saved)\"\n")?.narrowed(to: [], pieces: own)
    else { continue }
    let wrong = states(bytes, after: mark).pieces?.wrong ?? []
    try require(wrong.count <= PieceState.most + 1, "more wrong pieces than are kept")
  }
}

private func states(_ bytes: [UInt8], after mark: Mark) -> DigestStates {
  var states = mark.states
  bytes.withUnsafeBytes { states.update($0) }
  return states
}

private func mark(_ line: String) -> Mark? {
  Array("https://h/a\n\(line)".utf8).withUnsafeBytes { JobText($0) }.journal.data.checkpoint
}
