/// A hash of the bytes. `String.hashValue` is the same for different spellings of one character.
func byteHash(_ bytes: [UInt8]) -> Int {
  var hasher = Hasher()
  bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
  return hasher.finalize()
}
