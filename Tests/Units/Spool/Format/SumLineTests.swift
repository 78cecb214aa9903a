import Testing

@testable import Spool

/// Lines that sha256sum and cksfv read; what they make of them is tried in VerifyTests.
@Suite struct SumLineTests {
  private static let md5 = "900150983cd24fb0d6963f7d28e17f72"

  @Test(
    arguments: [
      ("a", "\(md5)  a", "MD5 (a) = \(md5)", "a 352441C2"),
      ("d/b c", "\(md5)  d/b c", "MD5 (d/b c) = \(md5)", "d/b c 352441C2"),
      ("a\\b", "\\\(md5)  a\\\\b", "\\MD5 (a\\\\b) = \(md5)", "a\\b 352441C2"),
      ("/a\nb\r", "\\\(md5)  /a\\nb\\r", "\\MD5 (/a\\nb\\r) = \(md5)", nil),
      ("-", "\(md5)  ./-", "MD5 (./-) = \(md5)", "./- 352441C2"),
      (";a", "\(md5)  ./;a", "MD5 (./;a) = \(md5)", "./;a 352441C2"),
      (" a", "\(md5)  ./ a", "MD5 (./ a) = \(md5)", "./ a 352441C2"),
      ("*a", "\(md5)  ./*a", "MD5 (./*a) = \(md5)", "./*a 352441C2"),
      ("\\a", "\\\(md5)  ./\\\\a", "\\MD5 (./\\\\a) = \(md5)", "./\\a 352441C2"),
      ("ü) = x", "\(md5)  ü) = x", "MD5 (ü) = x) = \(md5)", "ü) = x 352441C2"),
    ] as [(String, String, String, String?)])
  func lines(path: String, plain: String, tagged: String, sfv: String?) throws {
    let md5 = try #require(Digest(.md5, Self.md5))
    #expect(SumLine(md5, path, .plain)?.text == plain)
    #expect(SumLine(md5, path, .tagged)?.text == tagged)
    #expect(SumLine(Digest(Checksum(value: 0x3524_41C2)), path, .plain)?.text == sfv)
  }

  @Test func aTaggedCRC32() {
    #expect(SumLine(Digest(Checksum(value: 0x3524_41C2)), "a", .tagged)?.text == "CRC32 (a) = 352441C2")
  }
}
