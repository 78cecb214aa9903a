/// A certificate authority made for one test run, and a certificate of it for 127.0.0.1 and localhost.
package struct CertificateAuthority: Sendable {
  private let directory: TemporaryDirectory
  /// PEM files: what `--cacert` takes, and what a server needs.
  package let authority: String
  package let certificate: String
  package let key: String

  package init() async throws {
    directory = try TemporaryDirectory()
    authority = "\(directory.path)/ca.pem"
    certificate = "\(directory.path)/server.pem"
    key = "\(directory.path)/server.key"
    let newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    try await runTool(
      ["/usr/bin/openssl", "req", "-x509", "-subj", "/CN=spoolrun test authority"] + newKey + [
        "-keyout", "\(directory.path)/ca.key", "-out", authority,
        "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign",
      ])
    try await runTool(
      ["/usr/bin/openssl", "req", "-x509", "-subj", "/CN=localhost"] + newKey + [
        "-CA", authority, "-CAkey", "\(directory.path)/ca.key", "-keyout", key, "-out", certificate,
        "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-addext", "basicConstraints=CA:FALSE",
      ])
  }
}
