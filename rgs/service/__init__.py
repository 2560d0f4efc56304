"""Use cases: one public class a noun. Durable state in, pure core, one commit, a view out."""
