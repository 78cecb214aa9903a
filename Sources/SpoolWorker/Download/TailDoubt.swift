internal import Spool

/// The end of data that an answer left which broke off: its last bytes may be an error page or a filled buffer. They
/// are asked for once more, and believed only where both answers agree (INTERNALS.md, invariant 5). Pure. Offsets are
/// in bytes from the file's start.
struct TailDoubt: Equatable {
  /// The number of bytes that have to agree. At first as many are asked for, but no more than half of the answer: a
  /// server that breaks off all its answers early would bring nothing else.
  static let least: UInt64 = 64 << 10

  /// Where the answer began: the bytes before are not in doubt.
  let floor: UInt64
  /// The end of the data.
  let end: UInt64
  /// The next byte to compare, with which the next request begins.
  private(set) var position: UInt64
  /// All bytes from here to ``position`` agree.
  private var agreedFrom: UInt64
  private var window: UInt64
  /// How many bytes have to agree before one that differs.
  private var enough = Self.least

  /// - Returns: nil if there is nothing in doubt.
  init?(from floor: UInt64, to end: UInt64) {
    guard floor < end else { return nil }
    (self.floor, self.end) = (floor, end)
    position = Self.begin(from: floor, to: end)
    window = end - position
    agreedFrom = position
  }

  /// Where the request begins that compares the end of an answer.
  static func begin(from floor: UInt64, to end: UInt64) -> UInt64 { end - min(least, (end - floor + 1) / 2) }

  /// Notes that `count` more bytes agree.
  mutating func agree(_ count: Int) { position += UInt64(count) }

  /// Everything agrees, if this answer does not break off here as well.
  var isSettled: Bool { position >= end }

  /// Notes that an answer agreed and broke off at the same place: it may have the same junk. The next one has to begin
  /// elsewhere.
  mutating func endAlike() {
    // Nothing further back is left to ask for, so fewer bytes have to do.
    if agreedFrom == floor { enough = min(enough, (end - floor) / 4) }
    position = agreedFrom + (end - agreedFrom + 1) / 2
    agreedFrom = position
  }

  /// Notes that the byte at ``position`` differs.
  /// - Returns: where the data is to be cut. nil if too few bytes before it agree, for junk can agree by chance; then
  ///   ``position`` is further back, twice as far from the end.
  mutating func differ() -> UInt64? {
    if agreedFrom == floor || position - agreedFrom >= enough { return position }
    window *= 2
    position = max(floor, end - min(end, window))
    agreedFrom = position
    return nil
  }
}

extension PartData {
  /// Notes the end of an answer that began at `start`.
  func noteEnd(ofAnswerFrom start: UInt64, isBroken: Bool) {
    guard let doubt else {
      if isBroken { self.doubt = TailDoubt(from: start, to: length) }
      return
    }
    // What was compared before an answer broke off stays compared.
    guard doubt.isSettled else { return }
    if isBroken { self.doubt?.endAlike() } else { self.doubt = nil }
  }

  /// The offset of the next byte that a response has to send.
  var position: UInt64 { doubt?.position ?? length }

  /// Compares the bytes from ``position`` on with the data, as far as it is in doubt.
  /// - Returns: how many agree; nil if one differs.
  func compare(_ bytes: UnsafeRawBufferPointer) throws(SpoolError) -> Int? {
    guard var doubt else { return 0 }
    let count = Int(min(UInt64(bytes.count), doubt.end - doubt.position))
    let agreed = try agreement(of: UnsafeRawBufferPointer(rebasing: bytes[..<count]), at: doubt.position)
    doubt.agree(agreed)
    // A byte behind it shows that this answer has not broken off there.
    self.doubt = doubt.isSettled && agreed < bytes.count ? nil : doubt
    return agreed == count ? count : nil
  }

  /// Cuts off the end of the data after a byte differed.
  /// - Returns: the number of bytes; nil if more has to be asked for first, further back.
  func cutAfterDifference() async throws -> UInt64? {
    guard let floor = doubt?.floor, let offset = doubt?.differ() else { return nil }
    let count = length - offset
    try await cutBack(to: offset)
    // The answer that differed may have broken off at the same place, and its junk may agree in the first bytes.
    doubt = TailDoubt(from: floor, to: offset)
    return count
  }
}
