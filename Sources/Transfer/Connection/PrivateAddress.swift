internal import CCurl
internal import Glibc

/// Addresses that lead to this machine, to its networks, or to what runs it, and not to the Internet: where no
/// stranger's link should lead.
enum PrivateAddress {
  /// IANA's registries of special-purpose addresses (RFC 6890), multicast, and the address of Azure's metadata.
  private static let ofIPv4 = [
    AddressBlock(start: [0, 0, 0, 0], bits: 8), AddressBlock(start: [10, 0, 0, 0], bits: 8),
    AddressBlock(start: [100, 64, 0, 0], bits: 10), AddressBlock(start: [127, 0, 0, 0], bits: 8),
    AddressBlock(start: [169, 254, 0, 0], bits: 16), AddressBlock(start: [172, 16, 0, 0], bits: 12),
    AddressBlock(start: [192, 0, 0, 0], bits: 24), AddressBlock(start: [192, 168, 0, 0], bits: 16),
    AddressBlock(start: [198, 18, 0, 0], bits: 15), AddressBlock(start: [224, 0, 0, 0], bits: 3),
    AddressBlock(start: [168, 63, 129, 16], bits: 32),
  ]

  private static let ofIPv6 = [
    AddressBlock(start: [0xFC], bits: 7), AddressBlock(start: [0xFE, 0x80], bits: 9),
    AddressBlock(start: [0xFF], bits: 8),
    AddressBlock(start: [0, 0x64, 0xFF, 0x9B, 0, 1], bits: 48), AddressBlock(start: [0x20, 0x01, 0, 0], bits: 32),
  ]

  /// Networks of which each address has one of IPv4, and the byte where that is: compatible and mapped (RFC 4291,
  /// 2.5.5), NAT64 (RFC 6052), 6to4 (RFC 3056).
  private static let translated = [
    (AddressBlock(start: [UInt8](repeating: 0, count: 12), bits: 96), 12),
    (AddressBlock(start: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF], bits: 96), 12),
    (AddressBlock(start: [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0], bits: 96), 12),
    (AddressBlock(start: [0x20, 0x02], bits: 16), 2),
  ]

  /// - Parameter address: 4 or 16 bytes, in the order of the network.
  static func contains(_ address: [UInt8]) -> Bool {
    if address.count == 4 { return ofIPv4.contains { $0.contains(address) } }
    if let (_, start) = translated.first(where: { $0.0.contains(address) }) {
      return contains(Array(address[start..<start + 4]))
    }
    return ofIPv6.contains { $0.contains(address) }
  }

  /// The address that a socket is about to connect to, as text, if it is private or of another family; nil for all
  /// others.
  static func text(ifIn address: UnsafeMutablePointer<curl_sockaddr>) -> String? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return "" }
    let place = UnsafeRawPointer(address) + offset
    let bytes: [UInt8]
    switch address.pointee.family {
    case AF_INET:
      bytes = withUnsafeBytes(of: place.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
    case AF_INET6:
      bytes = withUnsafeBytes(of: place.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
    case let family: return "an address of family \(family)"
    }
    return contains(bytes) ? text(bytes) : nil
  }

  static func contains(_ text: UnsafePointer<CChar>) -> Bool {
    AddressBlock.address(text).map { contains($0) } ?? true
  }

  private static func text(_ bytes: [UInt8]) -> String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &text, socklen_t(text.count)) != nil else {
      return ""
    }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The addresses that begin with some bits, such as 192.0.2.0/24.
struct AddressBlock {
  let start: [UInt8]
  let bits: Int

  /// - Parameter address: of the same family.
  func contains(_ address: [UInt8]) -> Bool {
    (0..<bits).allSatisfy { bit in
      let mask: UInt8 = 0x80 >> (bit % 8)
      return start[bit / 8] & mask == address[bit / 8] & mask
    }
  }

  /// The bytes of an IP address, in the order of the network; nil for a name.
  static func address(_ text: UnsafePointer<CChar>) -> [UInt8]? {
    for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
      var bytes = [UInt8](repeating: 0, count: count)
      if inet_pton(family, text, &bytes) == 1 { return bytes }
    }
    return nil
  }
}
