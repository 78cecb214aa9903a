import Spool
import Testing

@testable import SpoolWorker

/// What gpgv says of a signature, and what counts.
@Suite struct OpenPGPStatusTests {
  private static let print = String(repeating: "A", count: 40)
  private static let good = [
    "NEWSIG", "GOODSIG AAAA somebody <a@test>", "VALIDSIG \(print) 2026-11-26 1795698607 0 4 0 22 8 00 \(print)",
  ]
  private static let unknown = ["NEWSIG", "ERRSIG BBBB 22 8 00 1795698607 9 BBBB", "NO_PUBKEY BBBB"]

  private func code(_ lines: [String], _ status: Int32 = 0, isInline: Bool = false) -> String? {
    let answer = lines.map { "[GNUPG:] \($0)\n" }.joined() + "GOODSIG is only a text here\n"
    let outcome = ChildProcess.Outcome(
      end: .exited(status), output: [], answer: Array(answer.utf8), lastLine: [])
    do throws(Failure) {
      let signer = try OpenPGPStatus(outcome, isInline: isInline).signer()
      return signer.name == Self.print && signer.time?.seconds == 1_795_698_607 ? nil : "\(signer)"
    } catch {
      return error.label
    }
  }

  @Test func `a good signature is one whatever unknown keys have signed as well`() {
    #expect(code(Self.good) == nil && code(Self.good, isInline: true) == nil)
    #expect(code(Self.unknown + Self.good, 2) == nil)
    #expect(code(Self.unknown, 2) == "unknown-key")
  }

  @Test(
    arguments: [
      ([], 0), (["GOODSIG AAAA a"], 0), (Array(good.dropFirst(2)), 0), (good, 1), (good, 2 + 1),
      (good + ["BADSIG AAAA a"], 0), (good + ["ERROR proc_pkt.plaintext 89_BAD_DATA"], 2), (good + ["NODATA 1"], 2),
      // Its algorithm is not known.
      (good + ["ERRSIG BBBB 99 8 00 1795698607 4 BBBB"], 2), (["NODATA 1", "NODATA 2"], 2),
      (["GOODSIG AAAA a", "VALIDSIG A"], 0), (good + Array(repeating: "NEWSIG", count: 8000), 0),
    ] as [([String], Int32)])
  func `what is not understood is no signature`(lines: [String], status: Int32) {
    #expect(code(lines, status) == "bad-signature")
  }

  @Test func `a key that is over is named, although the program is content`() {
    let valid = Self.good[2]
    #expect(code(["EXPKEYSIG AAAA a", valid]) == "expired-key")
    #expect(code(["EXPSIG AAAA a", valid]) == "expired-key")
    #expect(code(["REVKEYSIG AAAA a", valid]) == "revoked-key")
    #expect(code(Self.good + ["REVKEYSIG BBBB b", valid]) == "revoked-key")
  }

  /// Of a text in the frame, more than was signed could be taken.
  @Test func `a text in a frame needs a program that is content with all of it`() {
    #expect(code(Self.unknown + Self.good, 2, isInline: true) == "bad-signature")
  }

  /// Of a text that it cannot write, gpgv 2.2 finds no signature.
  @Test(arguments: [
    ("writing to '/t': No space left on device", "disk-full"), ("closing '/t': Disk quota exceeded", "disk-full"),
    ("creating '/t': Input/output error", "io"), ("reading '/t': No space left on device", "bad-signature"),
  ])
  func `a full disk says nothing of a signature`(error: String, code: String) {
    let outcome = ChildProcess.Outcome(
      end: .exited(2), output: Array("gpgv: error \(error)\ngpgv: no signature found\n".utf8),
      answer: Array("[GNUPG:] PLAINTEXT 74 0 \n[GNUPG:] NODATA 4\n".utf8), lastLine: [])
    let failure = #expect(throws: Failure.self) { try OpenPGPStatus(outcome, isInline: true).signer() }
    #expect(failure?.label == code)
  }

  @Test(
    arguments: [
      ("-----BEGIN PGP SIGNATURE-----\n", .openPGP), ("-----BEGIN SSH SIGNATURE-----\n", .ssh),
      ("untrusted comment: a\nRUR\ntrusted comment: b\nc\n", .minisign), ("untrusted comment: a\nRWT\n", .signify),
      ("", nil), ("<html>", nil), ("-----BEGIN PGP SIGNED MESSAGE-----\n", nil),
    ] as [(String, SignatureForm?)])
  func `a signature is told by its first bytes`(text: String, form: SignatureForm?) {
    #expect(SignatureForm(Array(text.utf8)) == form)
    #expect(SignatureForm([0x88, 0x75]) == .openPGP)
  }
}
