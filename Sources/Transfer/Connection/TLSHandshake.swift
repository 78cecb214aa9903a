/// The application protocol that a TLS handshake chooses.
enum TLSHandshake {
  /// Whether the server chooses HTTP/2 by this message (ALPN, RFC 7301); nil if the message does not decide.
  ///
  /// The choice is in the ServerHello of TLS 1.2 and in the EncryptedExtensions of TLS 1.3 (RFC 8446, 4 and 4.3.1),
  /// which has a ServerHello, too.
  static func choosesHTTP2(_ message: UnsafeRawBufferPointer) -> Bool? {
    let (serverHello, encryptedExtensions): (UInt8, UInt8) = (2, 8)
    guard message.count > 4, [serverHello, encryptedExtensions].contains(message[0]),
      Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3]) == message.count - 4
    else { return nil }
    // The whole extension: its number 16, the lengths of itself, of its list and of the one name in it, the name.
    let choice: [UInt8] = [0, 16, 0, 5, 0, 3, 2, UInt8(ascii: "h"), UInt8(ascii: "2")]
    return message.indices.dropLast(choice.count - 1).contains { message[$0...].starts(with: choice) }
  }
}
