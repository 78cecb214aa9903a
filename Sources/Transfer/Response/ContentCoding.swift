/// The codings that a response's Content-Encoding may name.
enum ContentCoding {
  /// Those of IANA's registry (RFC 9110, 18.6) but `identity`, and those that servers use without being there.
  private static let names: Set<String> = [
    "aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "pack200-gzip", "x-compress", "x-gzip",
    "zstd", "bzip2", "lz4", "lzma", "sdch", "snappy", "x-bzip2", "x-lzma", "x-snappy", "x-xz", "xz", "zlib",
  ]

  /// Whether a member of the field names a coding. Stores keep what the uploader wrote there: `utf-8`, `none`,
  /// `binary`, nothing at all, or the `aws-chunked` of the upload, which say nothing about the body.
  static func isOne(_ member: String) -> Bool {
    names.contains(lowercasedASCII(Substring(member.utf8.prefix { isTokenByte($0) })))
  }
}
