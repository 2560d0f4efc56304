/** The page's entry: it defines the elements. An operator that embeds them loads this module and writes `<rgs-page>`. */

import "./ui/page.js";
