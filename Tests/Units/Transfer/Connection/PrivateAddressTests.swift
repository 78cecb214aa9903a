import Glibc
import Testing

@testable import Transfer

@Suite struct PrivateAddressTests {
  @Test(
    arguments: [
      ("127.0.0.1", true), ("0.0.0.0", true), ("10.255.0.1", true), ("11.0.0.1", false), ("100.64.0.1", true),
      ("100.127.255.255", true), ("100.128.0.1", false), ("169.254.169.254", true), ("172.15.0.1", false),
      ("172.16.0.1", true), ("172.31.255.255", true), ("172.32.0.1", false), ("192.168.0.1", true),
      ("192.169.0.1", false), ("192.0.0.192", true), ("198.18.0.1", true), ("198.20.0.1", false), ("224.0.0.1", true),
      ("255.255.255.255", true), ("168.63.129.16", true), ("168.63.129.17", false), ("8.8.8.8", false),
      ("::", true), ("::1", true), ("::ffff:127.0.0.1", true), ("::ffff:8.8.8.8", false), ("::127.0.0.1", true),
      ("fc00::1", true), ("fdff::1", true), ("fe00::1", false), ("fe80::1", true), ("fec0::1", true), ("ff02::1", true),
      ("64:ff9b::10.0.0.1", true), ("64:ff9b::8.8.8.8", false), ("64:ff9b:1::1", true), ("2002:7f00:1::", true),
      ("2002:808:808::", false), ("2001::1", true), ("2001:4860:4860::8888", false), ("2606:4700::1", false),
      ("no address", true),
    ])
  func contains(text: String, isPrivate: Bool) {
    #expect(text.withCString { PrivateAddress.contains($0) } == isPrivate)
  }
}
