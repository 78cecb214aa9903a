internal import CCurl
internal import Glibc

/// Addresses that lead to this machine, to its networks, or to what runs it, and not to the Internet: where no
/// stranger's link should lead.
enum PrivateAddress {
  /// IANA's registries of special-purpose addresses (RFC 6890), multicast, and the address of Azure's metadata.
  private static let blocks = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3", "168.63.129.16", "fc00::/7", "fe80::/9", "ff00::/8",
    "64:ff9b:1::/48", "2001::/32",
  ].compactMap { AddressBlock($0) }

  /// Networks of which each address has one of IPv4, and the byte where that is: compatible and mapped (RFC 4291,
  /// 2.5.5), NAT64 (RFC 6052), 6to4 (RFC 3056).
  private static let translated = [("::/96", 12), ("::ffff:0:0/96", 12), ("64:ff9b::/96", 12), ("2002::/16", 2)]
    .compactMap { text, start in AddressBlock(text).map { ($0, start) } }

  /// - Parameter address: 4 or 16 bytes, in the order of the network.
  static func contains(_ address: [UInt8]) -> Bool {
    if let (_, start) = translated.first(where: { $0.0.contains(address) }) {
      return contains(Array(address[start..<start + 4]))
    }
    return blocks.contains { $0.contains(address) }
  }

  /// The address that a socket is about to connect to, as text, if it is private or of another family; nil for all
  /// others.
  static func text(ifIn address: UnsafeMutablePointer<curl_sockaddr>) -> String? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return "" }
    let place = UnsafeRawPointer(address) + offset
    let bytes: [UInt8]
    switch address.pointee.family {
    case AF_INET: bytes = withUnsafeBytes(of: place.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
    case AF_INET6: bytes = withUnsafeBytes(of: place.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
    case let family: return "an address of family \(family)"
    }
    return contains(bytes) ? text(bytes) : nil
  }

  static func contains(_ text: UnsafePointer<CChar>) -> Bool { AddressBlock.address(text).map { contains($0) } ?? true }

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
  private let start: [UInt8]
  private let bits: Int

  /// - Parameter text: without a number of bits, one address.
  init?(_ text: String) {
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), maxSplits: 1)
    guard let start = parts.first.flatMap({ Self.address(String(Substring($0))) }) else { return nil }
    let bits = parts.count == 2 ? decimal(parts[1]).flatMap { Int(exactly: $0) } ?? -1 : start.count * 8
    guard (0...start.count * 8).contains(bits) else { return nil }
    (self.start, self.bits) = (start, bits)
  }

  func contains(_ address: [UInt8]) -> Bool {
    start.count == address.count
      && (0..<bits).allSatisfy { bit in
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
