/// The list of a file's pieces as the text of a job names it (spool.5, PIECES). The text has the digest of the list, so
/// nobody can put another list in its place.
package struct PieceKey: Hashable, Sendable {
  package let algorithm: DigestAlgorithm
  /// Bytes of a piece. The last one may be shorter.
  package let length: UInt64
  /// SHA-256 of the list's text.
  package let list: Digest

  /// Bytes of a piece: of shorter ones the digests would be longer than what they prove.
  static let lengths: ClosedRange<UInt64> = 4096...1 << 30

  fileprivate init(_ algorithm: DigestAlgorithm, length: UInt64, list: Digest) {
    (self.algorithm, self.length, self.list) = (algorithm, length, list)
  }

  /// Reads `sha256 1M DIGEST`, with the SHA-256 of the list; nil for anything else.
  package init?(_ text: String) {
    let words = words(text)
    guard words.count == 3, let (algorithm, length) = Self.kind(words[..<2].joined(separator: " ")),
      let list = Digest(.sha256, String(words[2]))
    else { return nil }
    self.init(algorithm, length: length, list: list)
  }

  package var text: String { "\(kind) \(list)" }

  /// `sha256 1M`
  fileprivate var kind: String { "\(algorithm.rawValue) \(byteCountText(length))" }

  /// A CRC-32 has no state that a journal keeps.
  fileprivate static func kind(_ text: String) -> (DigestAlgorithm, UInt64)? {
    let words = words(text)
    guard words.count == 2, let algorithm = DigestAlgorithm(rawValue: String(words[0])), algorithm != .crc32,
      algorithm.isAvailable, let length = byteCount(words[1]), lengths.contains(length)
    else { return nil }
    return (algorithm, length)
  }
}

/// The digests of the pieces that a file consists of. Its text is a line such as `pieces: sha256 1M`, and a line with a
/// digest for each piece.
package final class PieceList: Sendable, Equatable {
  /// Bytes of its text.
  package static let longest = 16 << 20

  package let key: PieceKey
  /// Empty where only the digests are kept.
  package let text: [UInt8]
  /// One after the other.
  private let digests: [UInt8]
  private var width: Int { key.algorithm.digits / 2 }
  package var count: Int { digests.count / width }

  private static let start = "pieces: "

  /// - Parameter digests: one after the other, in hexadecimal digits.
  /// - Returns: nil for a length that pieces cannot have, and for too many or too few digests.
  package convenience init?(_ algorithm: DigestAlgorithm, length: UInt64, _ digests: [Digest]) {
    let lines = digests.map { "\($0)\n" }.joined()
    self.init(Array("\(Self.start)\(algorithm.rawValue) \(byteCountText(length))\n\(lines)".utf8))
  }

  /// Reads a text in exactly the form that ``text`` has; nil for any other.
  /// - Parameter keepsText: whether it is to be written again.
  package init?(_ text: [UInt8], keepsText: Bool = true) {
    guard text.count <= Self.longest, let end = text.firstIndex(of: 0x0A), end < 80,
      let head = String(validating: text[..<end], as: UTF8.self), head.begins(with: Self.start),
      let (algorithm, length) = PieceKey.kind(String(head.dropFirstBytes(Self.start.utf8.count)))
    else { return nil }
    let line = algorithm.digits + 1
    let lines = text[(end + 1)...]
    guard !lines.isEmpty, lines.count % line == 0 else { return nil }
    var found: [UInt8] = []
    found.reserveCapacity(lines.count / 2)
    for start in stride(from: lines.startIndex, to: lines.endIndex, by: line) {
      let digits = lines[start..<start + line - 1]
      guard lines[start + line - 1] == 0x0A, let digest = bytes(ofHexadecimal: digits) else { return nil }
      found += digest
    }
    var state = HashState(.sha256)
    text.withUnsafeBytes { state.update($0) }
    key = PieceKey(algorithm, length: length, list: Digest(state))
    // Another spelling of it would be another list.
    guard head == "\(Self.start)\(key.kind)" else { return nil }
    (self.text, digests) = (keepsText ? text : [], found)
  }

  /// The list of a payload's pieces.
  package struct Maker {
    private let length: UInt64
    private var running: RunningPiece
    private var digests: [Digest] = []

    package init(length: UInt64) {
      self.length = length
      running = RunningPiece(HashState(.sha256), length: length)
    }

    /// - Parameter size: bytes of the payload, by which the pieces are long enough.
    package init(size: UInt64) {
      var length: UInt64 = 1 << 20
      while size / length >= 1 << 16, length < PieceKey.lengths.upperBound { length *= 2 }
      self.init(length: length)
    }

    package mutating func take(_ bytes: UnsafeRawBufferPointer) { digests += running.update(bytes).map { Digest($0) } }

    /// nil for a payload without bytes, and for one that is too long.
    package func list() -> PieceList? {
      PieceList(.sha256, length: length, digests + (running.filled > 0 ? [Digest(running.state)] : []))
    }
  }

  package static func == (left: PieceList, right: PieceList) -> Bool { left.key == right.key }

  package var sizes: ClosedRange<UInt64> { UInt64(count - 1) * key.length + 1...UInt64(count) * key.length }

  /// The bytes of a piece, counted from 0, in a file of `size` bytes.
  package func range(of piece: Int, in size: UInt64) -> Range<UInt64> {
    let start = min(size, UInt64(piece) * key.length)
    return start..<min(size, start + key.length)
  }

  func isRight(_ piece: Int, _ state: HashState) -> Bool {
    piece < count && digests[piece * width..<(piece + 1) * width].elementsEqual(state.value)
  }
}

/// The piece that is not whole yet, while the file grows.
private struct RunningPiece: Sendable {
  private(set) var state: HashState
  let length: UInt64
  /// Bytes taken in.
  private(set) var filled: UInt64 = 0

  init(_ state: HashState, length: UInt64, filled: UInt64 = 0) {
    (self.state, self.length, self.filled) = (state, length, filled)
  }

  /// - Returns: the digests of the pieces that are whole now.
  mutating func update(_ bytes: UnsafeRawBufferPointer) -> [HashState] {
    var whole: [HashState] = []
    var rest = bytes
    while !rest.isEmpty {
      let count = Int(min(UInt64(rest.count), length - filled))
      state.update(UnsafeRawBufferPointer(rebasing: rest[..<count]))
      filled += UInt64(count)
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      guard filled == length else { break }
      whole.append(state)
      (state, filled) = (HashState(state.algorithm), 0)
    }
    return whole
  }
}

/// Which pieces of a file are wrong, while the file grows.
package struct PieceState: Sendable {
  /// So many in a row are no bit that was flipped: it is another file.
  package static let mostInRow = 4
  /// More are not kept: journal lines have them.
  package static let most = 256

  package let list: PieceList
  private var running: RunningPiece
  private var pieces = 0
  /// Those that are whole, counted from 0.
  private var whole: [Int] = []
  /// How many of the last whole ones were wrong.
  private(set) var inRow = 0

  init(_ list: PieceList) {
    self.list = list
    running = RunningPiece(HashState(list.key.algorithm), length: list.key.length)
  }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    for state in running.update(bytes) {
      let isRight = list.isRight(pieces, state)
      inRow = isRight ? 0 : inRow + 1
      if !isRight, whole.count < Self.most { whole.append(pieces) }
      pieces += 1
    }
  }

  private var offset: UInt64 { UInt64(pieces) * list.key.length + running.filled }

  /// Those that are wrong if the file ends here, counted from 0.
  package var wrong: [Int] { running.filled > 0 && !list.isRight(pieces, running.state) ? whole + [pieces] : whole }

  /// Whether so many whole ones are wrong that no others are noted.
  package var isFull: Bool { whole.count >= Self.most }

  /// How the file differs if it ends here.
  var mismatch: Mismatch? {
    let sizes = list.sizes
    guard sizes.contains(offset) else {
      return Mismatch(property: .size, expected: "\(sizes.lowerBound) to \(sizes.upperBound)", found: "\(offset)")
    }
    return wrong.first.map {
      Mismatch(property: .piece, expected: list.key.text, found: "another piece \($0 + 1) of \(list.count)")
    }
  }

  /// How what ``saved`` writes begins.
  static let start = "pieces/1:"

  /// `pieces/1:LIST:WRONG:STATE`, with the first digits of the list's digest.
  var saved: String? {
    running.state.saved.map { state in
      "\(Self.start)\(list.key.list.description.prefix(16)):\(whole.map { "\($0)" }.joined(separator: "+")):\(state)"
    }
  }

  /// Reads what ``saved`` wrote for the first `length` bytes; nil if it is of another list.
  init?(_ saved: String, of list: PieceList, length: UInt64) {
    let parts = saved.split(at: ":", maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 4, parts[1] == list.key.list.description.prefix(16),
      let state = HashState(parts[3], length: length % list.key.length), state.algorithm == list.key.algorithm
    else { return nil }
    let numbers = parts[2].split(at: "+").map { decimal($0).flatMap { Int(exactly: $0) } }
    let wrong = numbers.compactMap(\.self)
    pieces = Int(length / list.key.length)
    guard wrong.count == numbers.count, wrong.count <= Self.most, wrong == Set(wrong).sorted(),
      wrong.last ?? -1 < pieces
    else { return nil }
    (self.list, whole) = (list, wrong)
    running = RunningPiece(state, length: list.key.length, filled: length % list.key.length)
  }
}

package struct WrongPieces: Sendable, Equatable {
  /// How many of the last ones were wrong.
  package let inRow: Int
  package let isFull: Bool

  init(_ state: PieceState? = nil) { (inRow, isFull) = (state?.inRow ?? 0, state?.isFull ?? false) }
}
