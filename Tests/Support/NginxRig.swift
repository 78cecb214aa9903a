import Glibc

/// A real nginx over http and https, which offers HTTP/2, too, with its files and logs in a temporary directory.
///
/// Locations: `/` plain; `/slow/` 1 MiB a second for each connection; `/limited/` 100 KiB a second, and 503 for the
/// fourth request at a time; `/gzip/` compresses for whoever accepts that; `/private/` asks for basic authentication as
/// `user` with `secret`; `/client/` is for those with a certificate of the authority. All serve the same files.
package final class NginxRig: Sendable {
  package enum Scheme: String, Sendable, CaseIterable {
    case http, https
  }

  private let directory: TemporaryDirectory
  private let command: RunningCommand
  private let ports: [Scheme: UInt16]
  /// The document root.
  package let root: String

  package init(authority: CertificateAuthority) async throws {
    directory = try TemporaryDirectory()
    root = "\(directory.path)/www"
    guard mkdir(root, 0o755) == 0 else { throw TestSupportError("mkdir", root, errno: errno) }
    try writeFile("\(directory.path)/password", Array("user:{PLAIN}secret\n".utf8))
    (command, ports) = try await NginxRig.start(in: directory.path, root: root, authority: authority)
  }

  deinit {
    command.send(signal: SIGTERM)
  }

  /// The URL of a path, such as `/slow/data.bin`.
  package func url(_ scheme: Scheme, _ path: String) -> String {
    "\(scheme == .http ? "http" : "https")://127.0.0.1:\(ports[scheme] ?? 0)\(path)"
  }

  /// Puts a file in place by rename, as releases are; it is there under every location.
  package func publish(_ name: String, _ bytes: [UInt8], secondsAgo: Int = 3600) throws {
    let draft = "\(root)/.\(name)"
    try writeFile(draft, bytes)
    chmod(draft, 0o644)
    try setModificationTime(draft, secondsFromNow: -secondsAgo)
    guard rename(draft, "\(root)/\(name)") == 0 else { throw TestSupportError("rename", name, errno: errno) }
  }

  /// Finished requests in the order in which they ended.
  package func accessLog() throws -> [Access] {
    let log = "\(directory.path)/access.log"
    guard fileStatus(log) != nil else { return [] }
    return String(decoding: try readFile(log), as: UTF8.self).split(separator: "\n").compactMap { Access(String($0)) }
  }

  /// One line of the access log.
  package struct Access: Sendable, CustomStringConvertible {
    package let description: String
    package let status: Int
    package let bodyBytes: Int
    package let target: String
    /// Fields of the request and of the response; "-" where there was none.
    package let range, ifRange, contentRange, acceptEncoding, contentEncoding: String

    init?(_ line: String) {
      let words = line.split(separator: "\t").map(String.init)
      guard words.count == 8, let status = Int(words[0]), let bodyBytes = Int(words[1]) else { return nil }
      description = line
      self.status = status
      self.bodyBytes = bodyBytes
      target = words[2]
      (range, ifRange, contentRange) = (words[3], words[4], words[5])
      (acceptEncoding, contentEncoding) = (words[6], words[7])
    }
  }

  /// Starts nginx on ports that were free a moment ago, and on others should one be taken meanwhile.
  private static func start(
    in directory: String, root: String, authority: CertificateAuthority
  ) async throws -> (RunningCommand, [Scheme: UInt16]) {
    var lastError = ""
    for _ in 0..<5 {
      let ports = try Scheme.allCases.reduce(into: [:]) { $0[$1] = try freePort() }
      try writeFile(
        "\(directory)/nginx.conf",
        Array(configuration(directory: directory, root: root, ports: ports, authority: authority).utf8))
      let command = try RunningCommand(
        [
          "/usr/bin/timeout", "3600", "/usr/sbin/nginx", "-p", directory, "-e", "\(directory)/error.log", "-c",
          "\(directory)/nginx.conf",
        ],
        timeout: .seconds(3610))
      // It binds its ports before it writes its process number.
      try await waitUntil("nginx starts") { command.isFinished || fileStatus("\(directory)/nginx.pid") != nil }
      if !command.isFinished { return (command, ports) }
      lastError = try await command.result().description
    }
    throw TestSupportError("nginx does not start: \(lastError)")
  }

  private static func configuration(
    directory: String, root: String, ports: [Scheme: UInt16], authority: CertificateAuthority
  ) -> String {
    let temporaries = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    let fields =
      ["range", "if_range"].map { "$http_\($0)" } + [
        "$sent_http_content_range", "$http_accept_encoding", "$sent_http_content_encoding",
      ]
    return """
      daemon off;
      worker_processes 1;
      \(geteuid() == 0 ? "user root;" : "")
      pid \(directory)/nginx.pid;
      events { worker_connections 256; }
      http {
        log_format facts '$status\t$body_bytes_sent\t$request_uri\t\(fields.joined(separator: "\t"))';
        access_log \(directory)/access.log facts;
        \(temporaries.map { "\($0)_temp_path \(directory)/\($0);" }.joined(separator: " "))
        ssl_certificate \(authority.certificate);
        ssl_certificate_key \(authority.key);
        ssl_client_certificate \(authority.authority);
        ssl_verify_client optional;
        limit_conn_zone $server_port zone=server:64k;
        types { text/html html; }
        default_type application/octet-stream;
        server {
          listen 127.0.0.1:\(ports[.http] ?? 0);
          listen 127.0.0.1:\(ports[.https] ?? 0) ssl http2;
          root \(root);
          location /slow/ { alias \(root)/; limit_rate 1m; }
          location /limited/ { alias \(root)/; limit_rate 100k; limit_conn server 3; }
          location /gzip/ { alias \(root)/; gzip on; gzip_types *; gzip_min_length 1; }
          location /client/ { if ($ssl_client_verify != SUCCESS) { return 403; } alias \(root)/; }
          location /private/ { alias \(root)/; auth_basic spool; auth_basic_user_file \(directory)/password; }
        }
      }
      """
  }
}
